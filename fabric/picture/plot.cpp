#include "fabric/picture/plot.hpp"

#include "fabric/picture/axis.hpp"
#include "fabric/picture/page.hpp"
#include "fabric/picture/svg.hpp"

namespace weir::fabric {
namespace {

constexpr double width = 1060, body = 210, left = 62, right = 14, head = 30, key_row = 19, bottom = 38,
                 name_row = 34;
constexpr std::size_t colours = 8;

// The part of a line within the range of x; where it leaves, it is cut at the border.
std::vector<std::pair<double, double>> clipped(const Line& line, const Axis& x) {
  std::vector<std::pair<double, double>> out;
  const auto between = [&](const auto& a, const auto& b, double at) {
    const double part = line.steps || b.first == a.first ? 0 : (at - a.first) / (b.first - a.first);
    return std::pair{at, a.second + part * (b.second - a.second)};
  };
  for (std::size_t i = 0; i < line.points.size(); ++i) {
    const auto& here = line.points[i];
    if (i > 0) {
      const auto& before = line.points[i - 1];
      if (before.first < x.from && here.first > x.from) out.push_back(between(before, here, x.from));
      if (before.first < x.to && here.first > x.to) out.push_back(between(before, here, x.to));
    }
    if (here.first >= x.from && here.first <= x.to) out.push_back(here);
  }
  return out;
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    x_.log = plot.log_x;
    y_.log = plot.log_y;
    spans();
    place_keys();
    height_ = top_ + body + bottom;
    x_.low = left;
    x_.high = width - right;
    y_.low = top_ + body;
    y_.high = top_;
  }

  std::string draw() {
    Svg svg("plot", width, height_, plot_.title);
    svg.text("title", {0, 15}, Anchor::start, plot_.title);
    svg.text("quiet", {width - right, 15}, Anchor::end, axis_name(plot_.y_label, y_));
    for (const auto& band : plot_.bands) {
      const double from = std::max(band.from, x_.from), to = std::min(band.to, x_.to);
      if (from < to) svg.rect("band", x_.at(from), top_, std::max(0.5, x_.at(to) - x_.at(from)), body);
    }
    axes(svg);
    for (std::size_t i = 0; i < plot_.lines.size(); ++i) line(svg, i);
    limits(svg);
    keys(svg);
    return std::move(svg).finish();
  }

 private:
  void spans() {
    if (plot_.x_to > plot_.x_from) {
      x_.from = plot_.x_from;
      x_.to = plot_.x_to;
    } else {
      bool first = true;
      for (const auto& line : plot_.lines)
        for (const auto& point : line.points) {
          x_.from = first ? point.first : std::min(x_.from, point.first);
          x_.to = first ? point.first : std::max(x_.to, point.first);
          first = false;
        }
    }
    if (x_.log) x_.from = std::max(x_.from, 1e-9);
    if (x_.to <= x_.from) x_.to = x_.log ? x_.from * 10 : x_.from + 1;
    bool first = true;
    for (const auto& line : plot_.lines) {
      lines_.push_back(clipped(line, x_));
      for (const auto& point : lines_.back()) {
        y_.from = first ? point.second : std::min(y_.from, point.second);
        y_.to = first ? point.second : std::max(y_.to, point.second);
        first = false;
      }
    }
    y_.from = y_.log ? std::max(y_.from, 1e-9) : std::min(0.0, y_.from);
    if (y_.to <= y_.from) y_.to = y_.log ? y_.from * 10 : y_.from + 1;
    y_.to = y_.log ? y_.to * 1.15 : y_.to + (y_.to - y_.from) * 0.06;
  }

  bool has_keys() const { return plot_.lines.size() > 1 || !plot_.band_name.empty(); }

  // Names of lines are in rows below the title, so that the axes of all plots begin and end alike.
  void place_keys() {
    top_ = head;
    if (!has_keys()) return;
    Point at{left, head + 2};
    const auto place = [&](std::string_view name) {
      const double wide = 30 + text_width(name) + 16;
      if (at.x + wide > width - right && at.x > left) at = {left, at.y + key_row};
      key_at_.push_back(at);
      at.x += wide;
    };
    for (const auto& line : plot_.lines) place(line.name);
    if (!plot_.band_name.empty()) place(plot_.band_name);
    top_ = at.y + key_row - 4;
  }

  void keys(Svg& svg) const {
    if (!has_keys()) return;
    for (std::size_t i = 0; i < key_at_.size(); ++i) {
      const auto at = key_at_[i];
      const bool band = i == plot_.lines.size();
      if (band)
        svg.rect("band", at.x, at.y - 6, 22, 12);
      else
        svg.line(fmt::format("key c{}", i % colours), at, {at.x + 22, at.y});
      svg.text("", {at.x + 28, at.y + 4}, Anchor::start, band ? plot_.band_name : plot_.lines[i].name);
    }
  }

  void axes(Svg& svg) const {
    for (const double tick : y_.ticks()) {
      svg.line("grid", {x_.low, y_.at(tick)}, {x_.high, y_.at(tick)});
      svg.text("quiet", {left - 8, y_.at(tick) + 4}, Anchor::end, short_number(tick));
    }
    svg.line("axis", {x_.low, y_.low}, {x_.high, y_.low});
    if (!plot_.x_names.empty()) return named_axis(svg);
    // The long name of a logarithmic axis has its own line; other names are at the end of the numbers.
    const auto name = axis_name(plot_.x_label, x_);
    const double free_until = x_.log ? width : x_.high - text_width(name) - 12;
    for (const double tick : x_.ticks()) {
      svg.line("tick", {x_.at(tick), y_.low}, {x_.at(tick), y_.low + 5});
      if (x_.at(tick) < free_until)
        svg.text("quiet", {x_.at(tick), y_.low + 18}, Anchor::middle, short_number(tick));
    }
    svg.text("quiet", {x_.high, y_.low + (x_.log ? name_row : 18)}, Anchor::end, name);
  }

  // A limit's name is on its line at the right, or further left if it would overlap another name.
  void limits(Svg& svg) const {
    struct Taken {
      double from, y;
    };
    std::vector<Taken> taken;
    constexpr double name_height = 13;
    for (const auto& limit : plot_.limits) {
      if (limit.y > y_.to || limit.y < y_.from) continue;
      const double y = y_.at(limit.y);
      double end = x_.high - 3;
      for (const auto& other : taken)
        if (std::abs(other.y - y) < name_height) end = std::min(end, other.from - 14);
      svg.line("limit", {x_.low, y}, {x_.high, y});
      svg.text("quiet small over", {end, y - 3}, Anchor::end, limit.name);
      taken.push_back({end - text_width(limit.name), y});
    }
  }

  static std::string axis_name(const std::string& label, const Axis& axis) {
    return axis.log ? label + " (logarithmic)" : label;
  }

  // The label has its own line, because names reach the end of the axis. A name that would touch the previous
  // one is left out, but its tick stays.
  void named_axis(Svg& svg) const {
    double free_from = 0;
    for (std::size_t i = 0; i < plot_.x_names.size(); ++i) {
      const double x = x_.at(static_cast<double>(i)), wide = text_width(plot_.x_names[i]);
      svg.line("tick", {x, y_.low}, {x, y_.low + 5});
      const double end = std::min(x + wide / 2, width);
      if (end - wide < free_from) continue;
      svg.text("quiet", {end, y_.low + 18}, Anchor::end, plot_.x_names[i]);
      free_from = end + 12;
    }
    svg.text("quiet", {x_.high, y_.low + name_row}, Anchor::end, plot_.x_label + " (in equal steps)");
  }

  void line(Svg& svg, std::size_t i) const {
    const auto css = fmt::format("c{}", i % colours);
    std::vector<Point> points;
    for (const auto& [px, py] : lines_[i]) {
      if (plot_.lines[i].steps && !points.empty()) points.push_back({x_.at(px), points.back().y});
      points.push_back({x_.at(px), y_.at(py)});
    }
    if (points.empty()) return;
    if (plot_.filled) {
      auto around = points;
      around.push_back({points.back().x, y_.low});
      around.push_back({points.front().x, y_.low});
      svg.area(css, around);
    }
    svg.polyline(css, points);
    if (plot_.dots)
      for (const auto& [px, py] : lines_[i]) svg.circle(css, {x_.at(px), y_.at(py)}, 3);
  }

  const Plot& plot_;
  Axis x_, y_;
  std::vector<std::vector<std::pair<double, double>>> lines_;  // the visible part of each
  std::vector<Point> key_at_;
  double top_ = head, height_ = 0;
};

}  // namespace

std::string svg(const Plot& plot) { return Drawing(plot).draw(); }

}  // namespace weir::fabric
