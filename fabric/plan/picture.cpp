#include "fabric/plan/picture.hpp"

#include <algorithm>

#include "fabric/picture/network_map.hpp"
#include "fabric/picture/page.hpp"
#include "fabric/picture/svg.hpp"
#include "fabric/plan/report.hpp"

namespace weir::fabric {
namespace {

constexpr double width = 1060;

struct Part {
  std::string_view name;  // also its class
  std::uint64_t bytes;
};

// The names of the parts, in a row below their bar.
void keys(Svg& svg, double y, const std::vector<std::pair<std::string, std::string>>& class_and_text) {
  double x = 0;
  for (const auto& [css, text] : class_and_text) {
    svg.rect(css, x, y - 10, 12, 12);
    svg.text("", {x + 18, y}, Anchor::start, text);
    x += 36 + text_width(text);
  }
}

// The parts that ports set aside, to scale: for each kind of port, each of its ports, and each of its
// lossless priority groups.
void slices(Svg& svg, double y, const SwitchPlan& kind, const Network& network) {
  const auto groups = static_cast<double>(network.classes.lossless.size());
  double all = 0;
  for (const auto& port : kind.ports)
    all += static_cast<double>(port.ports_per_switch) * groups * static_cast<double>(port.size());
  if (all <= 0) return;
  const double scale = width / all;
  double x = 0;
  for (const auto& port : kind.ports) {
    const double begin = x;
    const double kept = static_cast<double>(port.guaranteed()) * scale;
    const double room = static_cast<double>(port.xoff) * scale;
    const double wide = static_cast<double>(port.ports_per_switch) * groups * (kept + room);
    const auto tip = fmt::format("{} of {}: each of {} priority groups keeps {} guaranteed and {} headroom",
                                 speed_text(port.speed_bps), cable_text(port.cable), groups,
                                 grouped(port.headroom.xon), grouped(port.xoff));
    for (std::size_t i = 0; i < port.ports_per_switch; ++i)
      for (double group = 0; group < groups; ++group) {
        svg.rect("guaranteed slice", x, y, kept, 26, tip);
        svg.rect("headroom slice", x + kept, y, room, 26, tip);
        x += kept + room;
      }
    const auto text =
        fmt::format("{} port{} of {}, {} each", port.ports_per_switch, port.ports_per_switch == 1 ? "" : "s",
                    speed_text(port.speed_bps), grouped(static_cast<std::uint64_t>(groups) * port.size()));
    svg.line("axis", {begin + 1, y + 31}, {x - 1, y + 31});
    if (wide > text_width(text)) svg.text("", {begin + wide / 2, y + 47}, Anchor::middle, text);
  }
}

}  // namespace

std::string topology_picture(const Plan& plan) {
  NetworkMap map{.network = *plan.network};
  for (const auto& [port, share] : plan.hot_links)
    map.links[port] = {
        "hot",
        fmt::format("{} to {}: {:.0f} % of its speed offered", map.network[map.network[port].node].name,
                    map.network[map.network.neighbor(port)].name, 100 * share),
        std::min(4.0, 0.8 * share)};
  std::size_t cyclic = 0;
  const auto circle = [&](const DependencyCycle& cycle) {
    for (const auto& hop : cycle.hops) {
      auto& mark = map.links[hop.out];
      cyclic += mark.css != "cyclic";
      mark = {"cyclic", cycle.text, 3, true};
    }
  };
  for (const auto& cycle : plan.deadlock.cycles) circle(cycle);
  for (const auto& failure : plan.deadlock.after_failure) circle(failure.cycle);
  map.keys = {{"link", "link between switches"},
              {"hot", fmt::format("oversubscribed link ({})", plan.hot_links.size())},
              {"cyclic", fmt::format("link on a buffer cycle ({})", cyclic)}};
  return svg(map);
}

std::string buffer_picture(const SwitchPlan& kind, const Network& network) {
  const auto& split = kind.split;
  const Part parts[] = {{"reserved", split.reserved},
                        {"guaranteed", split.guaranteed},
                        {"headroom", split.headroom},
                        {"shared", split.shared}};
  std::uint64_t total = 0;
  for (const auto& part : parts) total += part.bytes;
  total = std::max(total, split.buffer);
  const double scale = width / static_cast<double>(total);
  Svg svg("bar", width, 150, "how the buffer is split");
  double x = 0;
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& part : parts) {
    const double wide = static_cast<double>(part.bytes) * scale;
    svg.rect(part.name, x, 2, wide, 34, fmt::format("{}: {} bytes", part.name, grouped(part.bytes)));
    x += wide;
    names.emplace_back(
        part.name, fmt::format("{} {} ({:.1f} %)", part.name, grouped(part.bytes),
                               100.0 * static_cast<double>(part.bytes) / static_cast<double>(split.buffer)));
  }
  keys(svg, 54, names);
  if (!split.fits) {
    const double end = static_cast<double>(split.buffer) * scale;
    svg.line("key cyclic", {end, 0}, {end, 42});
    svg.text("alarm", {width, 54}, Anchor::end, "the buffer ends at the red line");
  }
  svg.text("quiet", {0, 90}, Anchor::start,
           split.headroom < split.headroom_sum
               ? fmt::format("What each port may take: {} of headroom from a pool of {}",
                             grouped(split.headroom_sum), grouped(split.headroom))
               : "Reserved for each port: guaranteed buffer and headroom of each lossless priority group");
  slices(svg, 98, kind, network);
  return std::move(svg).finish();
}

std::string queue_picture(const SwitchPlan& kind, const PortPlan& port) {
  const auto xoff = kind.xoff_limit, end = xoff + port.xoff;
  const auto xon = xoff > kind.xon_offset ? xoff - kind.xon_offset : 0;
  const auto total = std::max({end, port.marks.kmax_bytes, std::uint64_t{1}});
  const double scale = width / static_cast<double>(total);
  const auto at = [&](std::uint64_t bytes) { return static_cast<double>(bytes) * scale; };
  const auto& marks = port.marks;
  constexpr double bar_top = 46, bar_height = 26, row = 14;
  Svg svg("bar", width, bar_top + bar_height + 26 + row, "a priority group as it fills");
  const auto bar = [&](std::uint64_t from, std::uint64_t to, std::string_view css) {
    if (to > from) svg.rect(css, at(from), bar_top, at(to) - at(from), bar_height);
  };
  bar(0, xoff, "below");
  bar(marks.kmin_bytes, std::min(marks.kmax_bytes, total), "marking");
  bar(marks.kmax_bytes, xoff, "shared");
  bar(xoff, end, "headroom");
  // Labels are above or below the bar and turn inward at the ends. A label that would touch the previous
  // one goes into a second row.
  double above_until = -1, below_until = -1;
  const auto tick = [&](std::uint64_t bytes, std::string_view name, bool above) {
    const double x = at(bytes);
    const auto anchor = x < width * 0.15 ? Anchor::start : x > width * 0.85 ? Anchor::end : Anchor::middle;
    const auto label = fmt::format("{} {}", name, grouped(bytes));
    const double wide = text_width(label);
    const double from = anchor == Anchor::start ? x : anchor == Anchor::end ? x - wide : x - wide / 2;
    auto& until = above ? above_until : below_until;
    const double shift = until >= 0 && from < until + 10 ? row : 0;
    until = std::max(until, from + wide);
    if (above) {
      svg.line("axis", {x, 34 - shift}, {x, bar_top + bar_height});
      svg.text("", {x, 28 - shift}, anchor, label);
    } else {
      svg.line("axis", {x, bar_top}, {x, bar_top + bar_height + 10 + shift});
      svg.text("", {x, bar_top + bar_height + 22 + shift}, anchor, label);
    }
  };
  tick(marks.kmin_bytes, "Kmin", true);
  tick(marks.kmax_bytes, "Kmax", false);
  tick(xon, "XON", true);
  tick(xoff, "XOFF", false);
  if (!marks.before_pfc) svg.text("alarm", {width, 12}, Anchor::end, "ECN acts after PFC");
  return std::move(svg).finish();
}

}  // namespace weir::fabric
