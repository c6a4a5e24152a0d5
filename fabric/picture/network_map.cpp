#include "fabric/picture/network_map.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fabric/picture/svg.hpp"

namespace weir::fabric {
namespace {

constexpr double width = 1060, margin = 16, row_gap = 140, top = 44;
constexpr std::size_t most_links = 6000;  // more would be a grey area of megabytes
constexpr std::size_t most_hosts = 1024;
constexpr double name_fits = 34;

class Drawing {
 public:
  explicit Drawing(const NetworkMap& map)
      : map_(map), network_(map.network), at_(network_.nodes.size()), box_of_(network_.nodes.size()) {
    for (std::uint32_t n = 0; n < network_.nodes.size(); ++n)
      if (is_switch({n})) switches_.push_back({n});
    for (const auto& link : network_.links)
      if (between_switches(link.a)) ++links_;
    network_.tiered ? in_rows() : in_circle();
    if (map_.each_host && network_.nodes.size() - switches_.size() <= most_hosts) place_hosts();
  }

  std::string draw() {
    Svg svg("map", width, height_ + 34, map_.title);
    if (!map_.title.empty()) svg.text("title", {0, 15}, Anchor::start, map_.title);
    svg.raw(
        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"5\" "
        "markerHeight=\"5\" orient=\"auto\"><path class=\"arrow\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n");
    links(svg);
    for (const auto node : switches_) box(svg, node);
    row_names(svg);
    hosts(svg);
    keys(svg);
    return std::move(svg).finish();
  }

 private:
  bool is_switch(NodeId node) const { return network_[node].kind == NodeKind::switch_; }
  bool between_switches(PortId port) const {
    return is_switch(network_[port].node) && is_switch(network_.neighbor(port));
  }
  std::size_t hosts_at(NodeId node) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        network_[node].ports, [&](PortId port) { return !is_switch(network_.neighbor(port)); }));
  }

  void in_rows() {
    std::map<std::uint32_t, std::vector<NodeId>, std::greater<>> rows;
    for (const auto node : switches_) rows[network_[node].tier].push_back(node);
    double y = top;
    for (const auto& [tier, nodes] : rows) {
      const double each = (width - 2 * margin) / static_cast<double>(nodes.size());
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        at_[nodes[i].index] = {margin + each * (static_cast<double>(i) + 0.5), y};
        box_of_[nodes[i].index] = std::min(66.0, each * 0.84);
      }
      if (each * 0.84 < name_fits)
        row_names_.emplace_back(
            y, fmt::format("{} ... {}: {} switches, {} hosts each", network_[nodes.front()].name,
                           network_[nodes.back()].name, nodes.size(), hosts_at(nodes.front())));
      slot_ = each;
      y += row_gap;
    }
    height_ = y - row_gap + 40;
  }

  void in_circle() {
    const double radius = 170;
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      const double turn =
          2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(switches_.size());
      at_[switches_[i].index] = {width / 2 + 1.7 * radius * std::sin(turn), 220 - radius * std::cos(turn)};
      box_of_[switches_[i].index] = std::min(66.0, 2000.0 / static_cast<double>(switches_.size()));
    }
    slot_ = 74;
    height_ = 440;
  }

  // Hosts are squares below their first switch (beside it in a circle), as many in a row as fit.
  void place_hosts() {
    double lowest = height_;
    for (const auto node : switches_) {
      std::vector<NodeId> own;
      for (const auto port : network_[node].ports) {
        const auto host = network_.neighbor(port);
        if (!is_switch(host) && network_.neighbor(network_[host].ports.front()) == node) own.push_back(host);
      }
      if (own.empty()) continue;
      square_ =
          std::clamp(slot_ * 0.84 / std::ceil(std::sqrt(static_cast<double>(own.size()) * 2)), 4.0, 13.0);
      const auto columns = std::max<std::size_t>(1, static_cast<std::size_t>(slot_ * 0.9 / (square_ + 2)));
      const auto across = static_cast<double>(std::min(columns, own.size()));
      for (std::size_t i = 0; i < own.size(); ++i) {
        const std::size_t rows_above = i / columns;
        const auto column = static_cast<double>(i % columns), row = static_cast<double>(rows_above);
        const Point place{at_[node.index].x + (column - across / 2) * (square_ + 2) + 1,
                          at_[node.index].y + box_height(node) / 2 + 8 + row * (square_ + 2)};
        host_at_[own[i]] = place;
        lowest = std::max(lowest, place.y + square_ + 10);
      }
    }
    height_ = lowest;
  }

  double box_height(NodeId node) const { return std::clamp(box_of_[node.index], 10.0, 28.0); }

  // Lines end at the border of the boxes, so that arrowheads are visible; `aside` shifts them sideways.
  std::pair<Point, Point> ends(PortId from, double aside) const {
    const auto a = at_[network_[from].node.index], b = at_[network_.neighbor(from).index];
    const double length = std::max(std::hypot(b.x - a.x, b.y - a.y), 1e-9);
    const Point along{(b.x - a.x) / length, (b.y - a.y) / length};
    const auto cut = [&](NodeId node) {
      return std::min({box_of_[node.index] / 2 / std::max(std::abs(along.x), 1e-9),
                       box_height(node) / 2 / std::max(std::abs(along.y), 1e-9), length / 3});
    };
    const double leave = cut(network_[from].node), arrive = length - cut(network_.neighbor(from));
    const Point side{-along.y * aside, along.x * aside};
    return {{a.x + along.x * leave + side.x, a.y + along.y * leave + side.y},
            {a.x + along.x * arrive + side.x, a.y + along.y * arrive + side.y}};
  }

  static double opacity(std::size_t lines) {
    return std::clamp(60.0 / static_cast<double>(std::max<std::size_t>(1, lines)), 0.15, 0.8);
  }

  void links(Svg& svg) const {
    if (links_ <= most_links) {
      svg.raw("<g stroke-opacity=\"{:.2f}\">\n", opacity(links_));
      for (const auto& link : network_.links) {
        if (!between_switches(link.a) || map_.links.contains(link.a) || map_.links.contains(link.b)) continue;
        const auto [from, to] = ends(link.a, 0);
        svg.line("link", from, to);
      }
      svg.raw("</g>\n");
    }
    std::map<std::string, std::size_t> alike;
    for (const auto& [port, mark] : map_.links) ++alike[mark.css];
    for (const auto& [port, mark] : map_.links) {
      if (!between_switches(port) || alike[mark.css] > most_links) continue;
      const bool few = alike[mark.css] <= 60;
      // If both directions are marked, they are drawn side by side.
      const bool both = map_.links.contains(network_[port].peer);
      const auto [from, to] = ends(port, mark.arrow ? 5 : both ? 1.2 + mark.width / 4 : 0);
      svg.raw("<g stroke-width=\"{:.1f}\" stroke-opacity=\"{:.2f}\"{}>", mark.width,
              few ? 0.9 : opacity(alike[mark.css]), mark.arrow ? " marker-end=\"url(#arrow)\"" : "");
      svg.line(mark.css, from, to, mark.tip);
      svg.raw("</g>\n");
    }
  }

  void box(Svg& svg, NodeId node) const {
    const auto [x, y] = at_[node.index];
    const double wide = box_of_[node.index], tall = box_height(node);
    const auto hosts = hosts_at(node);
    const auto mark = map_.nodes.find(node);
    const auto tip =
        fmt::format("{}: {}, {} ports, {} hosts{}{}", network_[node].name,
                    network_.model_of(network_[node]).name, network_[node].ports.size(), hosts,
                    mark == map_.nodes.end() ? "" : "; ", mark == map_.nodes.end() ? "" : mark->second.tip);
    svg.rect("box", x - wide / 2, y - tall / 2, wide, tall, tip);
    if (mark != map_.nodes.end()) svg.rect(mark->second.css, x - wide / 2, y - tall / 2, wide, tall, tip);
    if (wide >= name_fits)
      svg.text(wide < 46 ? "small" : "", {x, y + 4}, Anchor::middle, network_[node].name);
    if (hosts == 0 || !host_at_.empty() || wide < 26) return;
    const auto number =
        wide < 50 ? std::to_string(hosts) : fmt::format("{} host{}", hosts, hosts == 1 ? "" : "s");
    // Below the box; in a circle on its outer side, where no link passes.
    if (network_.tiered) return svg.text("quiet small", {x, y + tall / 2 + 14}, Anchor::middle, number);
    const bool right = x >= width / 2;
    svg.text("quiet small", {x + (right ? 1 : -1) * (wide / 2 + 6), y + 4},
             right ? Anchor::start : Anchor::end, number);
  }

  // Names of rows whose boxes are too small for names.
  void row_names(Svg& svg) const {
    for (const auto& [y, name] : row_names_) svg.text("quiet", {margin, y + 26}, Anchor::start, name);
  }

  void hosts(Svg& svg) const {
    for (const auto& [host, place] : host_at_) {
      const auto mark = map_.nodes.find(host);
      const bool marked = mark != map_.nodes.end();
      const auto tip = network_[host].name + (marked ? ": " + mark->second.tip : "");
      svg.rect("host", place.x, place.y, square_, square_, tip);
      if (marked) svg.rect(mark->second.css, place.x, place.y, square_, square_, tip);
    }
  }

  void keys(Svg& svg) const {
    double x = margin;
    const double y = height_ + 18;
    for (const auto& key : map_.keys) {
      if (key.box)
        svg.rect(key.css, x, y - 6, 14, 12);
      else
        svg.line("key " + key.css, {x, y}, {x + 24, y});
      svg.text("", {x + (key.box ? 20 : 30), y + 4}, Anchor::start, key.text);
      x += 56 + text_width(key.text);
    }
  }

  const NetworkMap& map_;
  const Network& network_;
  std::vector<NodeId> switches_;
  std::size_t links_ = 0;
  std::vector<Point> at_;       // by node
  std::vector<double> box_of_;  // width of the box, by node
  std::map<NodeId, Point> host_at_;
  std::vector<std::pair<double, std::string>> row_names_;  // y and text
  double slot_ = 66, square_ = 8;                          // width for a node of the lowest tier; for a host
  double height_ = 400;
};

}  // namespace

std::string svg(const NetworkMap& map) { return Drawing(map).draw(); }

}  // namespace weir::fabric
