#include "fabric/picture/page.hpp"

#include <fmt/format.h>

#include <cmath>

namespace weir::fabric {
namespace {

// Colours are named once, for light and dark; the rest of the style uses the names.
constexpr std::string_view style = R"(
:root { color-scheme: light dark; --quiet: #6b7280; --edge: #8884; --page: #fff; --card: #fff; --box: #fff;
  --bad: #d62828; --warn: #e0901f; --good: #3f9a58; --note: #8a8f98;
  --c0: #2f6fce; --c1: #e0811a; --c2: #2f9a63; --c3: #c43d53; --c4: #7f57cf; --c5: #1f93a8; --c6: #9a702a; --c7: #cf4f9c;
  --shared: #59a14f; --headroom: #e8873a; --guaranteed: #4e79a7; --reserved: #9aa0a6; --marking: #e5c13c; }
@media (prefers-color-scheme: dark) { :root { --quiet: #9aa3af; --page: #14171c; --card: #1b1f26; --box: #1b1f26;
  --c0: #6ba2f5; --c1: #f2a14b; --c2: #5cc48d; --c3: #ee7286; --c4: #a98bf0; --c5: #52bfd3; --c6: #c79a50; --c7: #f07fc2; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1120px; margin: 2em auto 4em; padding: 0 1.2em; background: var(--page); }
h1 { margin: 0; font-size: 1.7em; } h2 { margin: 2.2em 0 .5em; font-size: 1.2em; border-bottom: 1px solid var(--edge); padding-bottom: .2em; }
h3 { margin: 1.6em 0 .3em; font-size: 1.02em; } .sub { color: var(--quiet); margin: .2em 0 1.2em; } code { font-size: .92em; }
figure { overflow-x: auto; margin: 1em 0; padding: .8em 1em .6em; border: 1px solid var(--edge); border-radius: 10px; background: var(--card); }
figcaption { color: var(--quiet); font-size: .88em; margin-top: .3em; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(158px, 1fr)); gap: 12px; margin: 1em 0; }
.tile { border: 1px solid var(--edge); border-radius: 10px; padding: .5em .8em; background: var(--card); }
.tile b { display: block; font-size: 1.3em; white-space: nowrap; } .tile span { color: var(--quiet); font-size: .85em; }
.tile.bad { border-color: var(--bad); } .tile.bad b { color: var(--bad); }
ul.list { list-style: none; padding: 0; } ul.list li { border-left: 5px solid var(--note); padding: .25em .8em; margin: .5em 0; }
ul.list li.fault { border-color: var(--bad); } ul.list li.warning { border-color: var(--warn); }
.partial { background: #e0901f33; border-left: 5px solid var(--warn); padding: .4em .8em; }
.scroll { overflow-x: auto; } .pair { display: flex; flex-wrap: wrap; gap: 1em 2.5em; align-items: flex-start; }
table { border-collapse: collapse; font-size: .9em; margin: .6em 0; } td, th { padding: .16em .75em; text-align: right; }
th { border-bottom: 1px solid var(--edge); font-weight: 600; } td:first-child, th:first-child { text-align: left; }
tr.chosen { background: #59a14f33; font-weight: 600; } td.bar { background: linear-gradient(var(--shared), var(--shared)) no-repeat; }
svg { width: 100%; min-width: 760px; height: auto; display: block; font: 12px system-ui, sans-serif; } svg text { fill: currentColor; }
svg .title { font-size: 14px; font-weight: 600; } svg .quiet { fill: var(--quiet); } svg .small { font-size: 10.5px; }
svg .over { paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
svg .alarm { fill: var(--bad); font-weight: 600; }
svg .grid { stroke: var(--edge); } svg .axis, svg .tick { stroke: var(--quiet); } svg .band { fill: var(--bad); fill-opacity: .13; }
svg polyline { fill: none; stroke-width: 1.7; stroke-linejoin: round; } svg polygon { stroke: none; fill-opacity: .16; }
svg .limit { stroke: var(--quiet); stroke-dasharray: 5 4; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); } .c3 { stroke: var(--c3); }
.c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); } .c6 { stroke: var(--c6); } .c7 { stroke: var(--c7); }
polygon.c0, circle.c0 { fill: var(--c0); } polygon.c1, circle.c1 { fill: var(--c1); } polygon.c2, circle.c2 { fill: var(--c2); }
polygon.c3, circle.c3 { fill: var(--c3); } polygon.c4, circle.c4 { fill: var(--c4); } polygon.c5, circle.c5 { fill: var(--c5); }
polygon.c6, circle.c6 { fill: var(--c6); } polygon.c7, circle.c7 { fill: var(--c7); } .key { stroke-width: 3; }
.shared { fill: var(--shared); } .below { fill: var(--shared); fill-opacity: .4; } .headroom { fill: var(--headroom); } .marking { fill: var(--marking); }
.guaranteed { fill: var(--guaranteed); } .reserved { fill: var(--reserved); } .slice { stroke: var(--card); stroke-width: .5; }
.box { fill: var(--box); stroke: currentColor; rx: 3px; } .host { fill: var(--edge); }
.link { stroke: var(--note); } .hot { stroke: var(--warn); } .cyclic { stroke: var(--bad); } .arrow { fill: var(--bad); }
.h1, .h2, .h3, .h4, .h5, .h6, .h7, .h8 { fill: var(--c1); } .h1 { fill-opacity: .12; } .h2 { fill-opacity: .24; } .h3 { fill-opacity: .36; }
.h4 { fill-opacity: .48; } .h5 { fill-opacity: .6; } .h6 { fill-opacity: .72; } .h7 { fill-opacity: .86; } .held { fill: var(--bad); }
)";

}  // namespace

std::string page_begin(std::string_view title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{}</title>\n<style>{}</style></head><body>\n",
      escaped(title), style);
}

std::string page_end() { return "</body></html>\n"; }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string short_number(double value) {
  const double size = std::fabs(value);
  if (size >= 1e9) return fmt::format("{:.3g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  if (size != 0 && size < 1e-3) return fmt::format("{:.2g}", value);
  return fmt::format("{:.4g}", value);
}

std::string grouped(std::uint64_t number) {
  std::string out = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > 0; at -= 3)
    out.insert(static_cast<std::size_t>(at), 1, ',');
  return out;
}

}  // namespace weir::fabric
