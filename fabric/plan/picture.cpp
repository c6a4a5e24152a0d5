#include "fabric/plan/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "fabric/plan/report.hpp"

namespace weir::fabric {
namespace {

constexpr double width = 1100;
constexpr double margin = 20;
constexpr std::size_t most_plain_links = 6000;  // more would be a grey area, and megabytes

struct Point {
  double x = 0, y = 0;
};

class Topology {
 public:
  explicit Topology(const Plan& plan)
      : network_(*plan.network), at_(network_.nodes.size()), box_of_(network_.nodes.size()) {
    for (std::uint32_t n = 0; n < network_.nodes.size(); ++n)
      if (network_.nodes[n].kind == NodeKind::switch_) switches_.push_back({n});
    network_.tiered ? in_rows() : in_circle();
    for (const auto& cycle : plan.deadlock.cycles)
      for (const auto& hop : cycle.hops) cyclic_.insert(hop.out);
    for (const auto& failure : plan.deadlock.after_failure)
      for (const auto& hop : failure.cycle.hops) cyclic_.insert(hop.out);
    for (const auto& [port, share] : plan.hot_links) hot_[port] = share;
  }

  std::string draw() {
    std::string out = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" class="topology" role="img">)"
        "\n<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"5\" "
        "markerHeight=\"5\" "
        "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#d62828\"/></marker></defs>\n",
        width, height_);
    lines(out);
    boxes(out);
    legend(out);
    return out + "</svg>\n";
  }

 private:
  void in_rows() {
    std::map<std::uint32_t, std::vector<NodeId>, std::greater<>> rows;
    for (const auto node : switches_) rows[network_[node].tier].push_back(node);
    double y = 50;

    for (const auto& [tier, nodes] : rows) {
      for (std::size_t i = 0; i < nodes.size(); ++i)
        at_[nodes[i].index] = {margin + (width - 2 * margin) * (static_cast<double>(i) + 0.5) /
                                            static_cast<double>(nodes.size()),
                               y};
      for (const auto node : nodes)
        box_of_[node.index] = std::min(64.0, (width - 2 * margin) / static_cast<double>(nodes.size()) * 0.8);
      y += 150;
    }

    height_ = y - 150 + 90;
  }

  void in_circle() {
    const double radius = 190;
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      const double turn =
          2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(switches_.size());
      at_[switches_[i].index] = {width / 2 + 1.6 * radius * std::sin(turn), 240 - radius * std::cos(turn)};
    }
    for (const auto node : switches_)
      box_of_[node.index] = std::min(64.0, 2000.0 / static_cast<double>(switches_.size()));
    height_ = 520;
  }

  double box_height(NodeId node) const { return std::clamp(box_of_[node.index], 10.0, 28.0); }

  bool drawn(const Link& link) const {
    return network_[network_[link.a].node].kind == NodeKind::switch_ &&
           network_[network_[link.b].node].kind == NodeKind::switch_;
  }

  void line(std::string& out, PortId from, std::string_view style, double aside = 0) const {
    // Ends at the border of the boxes, so that arrowheads are seen.
    auto a = at_[network_[from].node.index], b = at_[network_.neighbor(from).index];
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    // How far the border of a node's box is from its middle in this direction.
    const auto cut = [&](NodeId node) {
      const double wide = box_of_[node.index] / 2, tall = box_height(node) / 2;
      return std::min({wide / std::max(std::abs(b.x - a.x) / length, 1e-9),
                       tall / std::max(std::abs(b.y - a.y) / length, 1e-9), length / 3});
    };
    const double leave = cut(network_[from].node), arrive = cut(network_.neighbor(from));
    const Point along{(b.x - a.x) / length, (b.y - a.y) / length};
    const Point shift{-along.y * aside, along.x * aside};
    out += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n",
                       a.x + along.x * leave + shift.x, a.y + along.y * leave + shift.y,
                       b.x - along.x * arrive + shift.x, b.y - along.y * arrive + shift.y, style);
  }

  void lines(std::string& out) const {
    const auto between_switches =
        std::ranges::count_if(network_.links, [&](const Link& link) { return drawn(link); });
    const double opacity = std::clamp(60.0 / static_cast<double>(between_switches), 0.15, 0.8);
    if (static_cast<std::size_t>(between_switches) <= most_plain_links)
      for (const auto& link : network_.links)
        if (drawn(link) && !hot_.contains(link.a) && !hot_.contains(link.b))
          line(out, link.a, fmt::format("stroke=\"#8a8f98\" stroke-opacity=\"{:.2f}\"", opacity));
    if (hot_.size() <= most_plain_links)
      for (const auto& [port, share] : hot_)
        line(out, port,
             fmt::format("stroke=\"#e09f1f\" stroke-opacity=\"{:.2f}\" stroke-width=\"{:.1f}\"",
                         std::clamp(60.0 / static_cast<double>(hot_.size()), 0.15, 0.9),
                         std::min(4.0, 0.8 * share)));
    for (const auto port : cyclic_)
      line(out, port, "stroke=\"#d62828\" stroke-width=\"3\" marker-end=\"url(#arrow)\"", 5);
  }

  void boxes(std::string& out) const {
    for (const auto node : switches_) {
      const auto [x, y] = at_[node.index];
      const double box = box_of_[node.index];
      std::size_t hosts = 0;
      for (const auto port : network_[node].ports)
        hosts += network_[network_.neighbor(port)].kind == NodeKind::host;
      const double tall = box_height(node);
      out += fmt::format(
          "<g><title>{}: {}, {} ports, {} hosts</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.1f}\" rx=\"3\" class=\"switch\"/>",
          network_[node].name, network_.model_of(network_[node]).name, network_[node].ports.size(), hosts,
          x - box / 2, y - tall / 2, box, tall);
      if (box >= 34)
        out +=
            fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"11\">{}</text>",
                        x, y + 4, network_[node].name);
      if (hosts && box >= 10) {
        // Below the box; in a circle on its outer side, where no link goes.
        const bool right = x >= width / 2;
        const double beside = (right ? 1 : -1) * (box / 2 + 6);
        out += fmt::format(
            "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{:.0f}\" "
            "class=\"quiet\">{}</text>",
            network_.tiered ? x : x + beside, network_.tiered ? y + tall / 2 + 13 : y + 4,
            network_.tiered ? "middle"
            : right         ? "start"
                            : "end",
            std::min(11.0, box * 0.8),
            box >= 50 ? fmt::format("{} host{}", hosts, hosts == 1 ? "" : "s") : std::to_string(hosts));
      }
      out += "</g>\n";
    }
  }

  void legend(std::string& out) const {
    const double y = height_ - 16;
    const auto entry = [&](double x, std::string_view color, std::string_view text) {
      out += fmt::format(
          "<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"{3}\" stroke-width=\"3\"/><text "
          "x=\"{4}\" y=\"{5}\" font-size=\"12\">{6}</text>\n",
          x, y, x + 26, color, x + 32, y + 4, text);
    };
    entry(margin, "#8a8f98", "link between switches");
    entry(margin + 220, "#e09f1f", fmt::format("more offered than it carries ({})", hot_.size()));
    entry(margin + 520, "#d62828", fmt::format("on a cycle of buffers ({})", cyclic_.size()));
    out += fmt::format(
        "<text x=\"{}\" y=\"{}\" font-size=\"12\" class=\"quiet\">numbers at switches: hosts</text>\n",
        margin + 800, y + 4);
  }

  const Network& network_;
  std::vector<NodeId> switches_;
  std::vector<Point> at_;       // by node
  std::vector<double> box_of_;  // width of its box
  std::set<PortId> cyclic_;
  std::map<PortId, double> hot_;
  double height_ = 400;
};

struct Part {
  std::string_view name;
  std::uint64_t bytes;
  std::string_view color;
};

}  // namespace

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

std::string topology_picture(const Plan& plan) { return Topology(plan).draw(); }

std::string buffer_picture(const SwitchPlan& kind) {
  const auto& split = kind.split;
  const Part parts[] = {{"reserved", split.reserved, "#9aa0a6"},
                        {"guaranteed", split.guaranteed, "#4e79a7"},
                        {"headroom", split.headroom, "#e8873a"},
                        {"shared", split.shared, "#59a14f"}};
  std::uint64_t total = 0;
  for (const auto& part : parts) total += part.bytes;
  total = std::max(total, split.buffer);
  const double scale = (width - 2 * margin) / static_cast<double>(total);
  std::string out =
      fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} 86" class="bar" role="img">)"
                  "\n",
                  width);
  double x = margin, label = margin;
  for (const auto& part : parts) {
    const double wide = static_cast<double>(part.bytes) * scale;
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"6\" width=\"{:.1f}\" height=\"34\" fill=\"{}\"><title>{}: {} bytes"
        "</title></rect>\n",
        x, wide, part.color, part.name, grouped(part.bytes));
    x += wide;
    const auto text =
        fmt::format("{} {} ({:.1f} %)", part.name, grouped(part.bytes),
                    100.0 * static_cast<double>(part.bytes) / static_cast<double>(split.buffer));
    out += fmt::format(
        "<rect x=\"{0:.1f}\" y=\"54\" width=\"12\" height=\"12\" fill=\"{1}\"/><text x=\"{2:.1f}\" y=\"65\" "
        "font-size=\"13\">{3}</text>\n",
        label, part.color, label + 18, text);
    label += 36 + 7.4 * static_cast<double>(text.size());
  }
  if (!split.fits)
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"0\" x2=\"{0:.1f}\" y2=\"46\" stroke=\"#d62828\" stroke-width=\"3\"/>"
        "<text x=\"{0:.1f}\" y=\"82\" font-size=\"13\" fill=\"#d62828\" text-anchor=\"end\">the buffer ends "
        "here</text>\n",
        margin + static_cast<double>(split.buffer) * scale);
  return out + "</svg>\n";
}

std::string queue_picture(const SwitchPlan& kind, const PortPlan& port) {
  const auto xoff = kind.xoff_limit, end = xoff + port.xoff;
  const auto xon = xoff > kind.xon_offset ? xoff - kind.xon_offset : 0;
  const auto total = std::max({end, port.marks.kmax_bytes, std::uint64_t{1}});
  const double scale = (width - 2 * margin) / static_cast<double>(total);
  const auto at = [&](std::uint64_t bytes) { return margin + static_cast<double>(bytes) * scale; };
  std::string out =
      fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} 96" class="bar" role="img">)"
                  "\n",
                  width);
  const auto bar = [&](std::uint64_t from, std::uint64_t to, std::string_view style) {
    if (to > from)
      out += fmt::format("<rect x=\"{:.1f}\" y=\"36\" width=\"{:.1f}\" height=\"24\" {}/>\n", at(from),
                         at(to) - at(from), style);
  };
  const auto& marks = port.marks;
  bar(0, xoff, "fill=\"#59a14f\" fill-opacity=\"0.45\"");
  bar(marks.kmin_bytes, std::min(marks.kmax_bytes, total), "fill=\"#edc948\" fill-opacity=\"0.75\"");
  bar(marks.kmax_bytes, xoff, "fill=\"#59a14f\"");
  bar(xoff, end, "fill=\"#e8873a\"");
  // A label above or below the bar, turned inward at the ends.
  const auto tick = [&](std::uint64_t bytes, std::string_view name, bool above) {
    const double x = at(bytes);
    const auto* anchor = x < width * 0.15 ? "start" : x > width * 0.85 ? "end" : "middle";
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"currentColor\"/><text "
        "x=\"{0:.1f}\" y=\"{3}\" font-size=\"13\" text-anchor=\"{4}\">{5} {6}</text>\n",
        x, above ? 26 : 36, above ? 60 : 70, above ? 20 : 86, anchor, name, grouped(bytes));
  };
  tick(marks.kmin_bytes, "Kmin", true);
  tick(marks.kmax_bytes, "Kmax", false);
  tick(xon, "XON", true);
  tick(xoff, "XOFF", false);
  if (!marks.before_pfc)
    out += fmt::format(
        "<text x=\"{:.0f}\" y=\"20\" font-size=\"13\" fill=\"#d62828\" text-anchor=\"middle\">ECN acts "
        "after PFC</text>\n",
        width / 2);
  return out + "</svg>\n";
}

}  // namespace weir::fabric
