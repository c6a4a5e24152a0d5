#include "fabric/sim/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace weir::fabric::sim {

const std::string_view plot_style = R"(
.plot { width: 100%; height: auto; display: block; margin: .4em 0 1.6em; font: 12px system-ui, sans-serif; }
.plot text { fill: currentColor; } .plot .title { font-size: 14px; font-weight: 600; } .plot .label { fill: #7f858d; }
.plot .grid { stroke: #8883; stroke-width: 1; } .plot .axis { stroke: #8888; } .plot .band { fill: #d6282822; }
.plot polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.c0 { stroke: #3b7dd8; } .c1 { stroke: #e08a1f; } .c2 { stroke: #35a06b; } .c3 { stroke: #c8475a; } .c4 { stroke: #8a63d2; }
.c5 { stroke: #2a9db0; } .c6 { stroke: #a3782b; } .c7 { stroke: #d45fa5; }
.plot circle.c0 { fill: #3b7dd8; } .plot circle.c1 { fill: #e08a1f; } .plot circle.c2 { fill: #35a06b; }
.plot circle.c3 { fill: #c8475a; } .plot circle.c4 { fill: #8a63d2; } .plot circle.c5 { fill: #2a9db0; }
)";

namespace {

constexpr double width = 940, height = 300, left = 76, right = 16, top = 34, bottom = 46, legend = 190;

struct Axis {
  double from = 0, to = 1;
  bool log = false;
  double low = 0, high = 1;  // on the page

  double at(double value) const {
    const double part =
        log ? (std::log10(std::max(value, from)) - std::log10(from)) / (std::log10(to) - std::log10(from))
            : (value - from) / (to - from);
    return low + part * (high - low);
  }
  std::vector<double> ticks() const {
    std::vector<double> list;
    if (log) {
      const double decades = std::log10(to / from);
      for (double power = std::floor(std::log10(from)); power <= std::log10(to) + 1e-9; ++power)
        for (const double digit : {1.0, 2.0, 5.0}) {
          if (decades > 2.5 && digit != 1) continue;
          const double tick = digit * std::pow(10, power);
          if (tick >= from * 0.999 && tick <= to * 1.001) list.push_back(tick);
        }
      return list;
    }
    const double rough = (to - from) / 6;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : rough / power > 1 ? 2 : 1);
    for (double tick = std::ceil(from / step - 1e-9) * step; tick <= to + step * 1e-9; tick += step)
      list.push_back(tick + 0.0);  // -0.0, which ceil gives, would be written as "-0"
    return list;
  }
};

void span_of(const Plot& plot, Axis& x, Axis& y) {
  bool first = true;
  for (const auto& line : plot.lines)
    for (const auto& [px, py] : line.points) {
      if (first) {
        x.from = x.to = px;
        y.from = y.to = py;
        first = false;
      }
      x.from = std::min(x.from, px);
      x.to = std::max(x.to, px);
      y.from = std::min(y.from, py);
      y.to = std::max(y.to, py);
    }
  if (plot.x_to > plot.x_from) {
    x.from = plot.x_from;
    x.to = plot.x_to;
  }
  x.log = plot.log_x;
  y.log = plot.log_y;
  if (x.log) x.from = std::max(x.from, 1e-9);
  if (y.log)
    y.from = std::max(y.from, 1e-9);
  else
    y.from = std::min(0.0, y.from);
  if (x.to <= x.from) x.to = x.log ? x.from * 10 : x.from + 1;
  if (y.to <= y.from) y.to = y.log ? y.from * 10 : y.from + 1;
  y.to = y.log ? y.to * 1.15 : y.to + (y.to - y.from) * 0.06;
}

}  // namespace

std::string short_number(double value) {
  const double size = std::fabs(value);
  if (size >= 1e9) return fmt::format("{:.3g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  if (size != 0 && size < 1e-3) return fmt::format("{:.2g}", value);
  return fmt::format("{:.4g}", value);
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string svg(const Plot& plot) {
  Axis x, y;
  span_of(plot, x, y);
  const bool with_legend = plot.lines.size() > 1 || !plot.band_name.empty();
  x.low = left;
  x.high = width - right - (with_legend ? legend : 0);
  y.low = height - bottom;
  y.high = top;
  std::string out = fmt::format("<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                                width, height, html_escaped(plot.title));
  const auto add = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  add("<text class=\"title\" x=\"{}\" y=\"18\">{}</text>\n", left, html_escaped(plot.title));
  for (const auto& band : plot.bands)
    add("<rect class=\"band\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>\n", x.at(band.from), top,
        std::max(0.5, x.at(band.to) - x.at(band.from)), height - top - bottom);
  for (const double tick : y.ticks())
    add("<line class=\"grid\" x1=\"{0}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"label\" "
        "x=\"{3}\" "
        "y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        left, x.high, y.at(tick), left - 8, y.at(tick) + 4, short_number(tick));
  for (const double tick : x.ticks())
    add("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text class=\"label\" "
        "x=\"{0:.1f}\" "
        "y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        x.at(tick), height - bottom, height - bottom + 5, height - bottom + 19, short_number(tick));
  add("<line class=\"axis\" x1=\"{0}\" x2=\"{1:.1f}\" y1=\"{2}\" y2=\"{2}\"/>\n", left, x.high,
      height - bottom);
  add("<text class=\"label\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", x.high, height - 8,
      html_escaped(plot.x_label));
  add("<text class=\"label\" x=\"{:.1f}\" y=\"18\" text-anchor=\"end\">{}</text>\n", x.high,
      html_escaped(plot.y_label));
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const auto& line = plot.lines[i];
    out += fmt::format("<polyline class=\"c{}\" points=\"", i % 8);
    double before = 0;
    bool first = true;
    for (const auto& [px, py] : line.points) {
      if (line.steps && !first) add("{:.1f},{:.1f} ", x.at(px), before);
      before = y.at(py);
      first = false;
      add("{:.1f},{:.1f} ", x.at(px), before);
    }
    out += "\"/>\n";
    if (plot.dots)
      for (const auto& [px, py] : line.points)
        add("<circle class=\"c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>\n", i % 8, x.at(px), y.at(py));
    if (!with_legend) continue;
    const double row = top + 8 + 18 * static_cast<double>(i);
    add("<line class=\"c{0}\" stroke-width=\"3\" x1=\"{1:.1f}\" x2=\"{2:.1f}\" y1=\"{3}\" y2=\"{3}\"/><text "
        "x=\"{4:.1f}\" "
        "y=\"{5}\">{6}</text>\n",
        i % 8, x.high + 16, x.high + 34, row, x.high + 40, row + 4, html_escaped(line.name));
  }
  if (!plot.band_name.empty()) {
    const double row = top + 2 + 18 * static_cast<double>(plot.lines.size());
    add("<rect class=\"band\" x=\"{:.1f}\" y=\"{}\" width=\"18\" height=\"12\"/><text x=\"{:.1f}\" "
        "y=\"{}\">{}</text>\n",
        x.high + 16, row, x.high + 40, row + 10, html_escaped(plot.band_name));
  }
  return out + "</svg>\n";
}

}  // namespace weir::fabric::sim
