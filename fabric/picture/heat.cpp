#include "fabric/picture/heat.hpp"

#include "fabric/picture/axis.hpp"
#include "fabric/picture/page.hpp"
#include "fabric/picture/svg.hpp"

namespace weir::fabric {
namespace {

constexpr double width = 1060, left = 172, right = 14, head = 48, row_height = 17, bottom = 34;
constexpr unsigned shades = 8;

unsigned shade(double value, double most) {
  if (value <= 0 || most <= 0) return 0;
  return std::clamp(static_cast<unsigned>(std::ceil(value / most * shades)), 1u, shades);
}

// Neighbouring moments that look alike become one box, which keeps the page small.
template <class Look, class Draw>
void runs(std::size_t count, Look look, Draw draw) {
  for (std::size_t from = 0, i = 1; i <= count; ++i)
    if (i == count || look(i) != look(from)) {
      if (look(from) != 0) draw(from, i, look(from));
      from = i;
    }
}

}  // namespace

std::string svg(const HeatMap& map) {
  double most = 0;
  for (const auto& row : map.rows)
    for (const double value : row.values) most = std::max(most, value);
  const double body = row_height * static_cast<double>(map.rows.size());
  Axis x;
  x.from = map.x_from;
  x.to = std::max(map.x_to, map.x_from + 1e-9);
  x.low = left;
  x.high = width - right;
  Svg svg("heat", width, head + body + bottom, map.title);
  svg.text("title", {0, 15}, Anchor::start, map.title);
  const double key = width - right - 8 * 14 - text_width(map.held_name) - 160;
  svg.text("quiet", {key - 8, 33}, Anchor::end, map.value_name);
  for (unsigned i = 1; i <= shades; ++i) svg.rect(fmt::format("h{}", i), key + 14.0 * (i - 1), 23, 14, 12);
  svg.text("quiet", {key + 14 * shades + 8, 33}, Anchor::start, short_number(most));
  svg.rect("held", width - right - text_width(map.held_name) - 30, 27, 22, 4);
  svg.text("quiet", {width - right, 33}, Anchor::end, map.held_name);
  const auto end_of = [&](std::size_t i) {
    return x.at(std::clamp(i < map.moments.size() ? map.moments[i] : x.to, x.from, x.to));
  };
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const auto& row = map.rows[r];
    const double y = head + row_height * static_cast<double>(r);
    svg.text("", {left - 8, y + 12.5}, Anchor::end, row.name);
    svg.line("grid", {x.low, y + row_height - 1}, {x.high, y + row_height - 1});
    const auto count = std::min({map.moments.size(), row.values.size(), row.held.size()});
    if (count == 0) continue;
    const auto box = [&](std::size_t from, std::size_t to, std::string_view css, double top, double tall) {
      const double begin = x.at(std::max(x.from, map.moments[from])), end = end_of(to);
      if (map.moments[from] < x.to && end > begin) svg.rect(css, begin, top, end - begin, tall);
    };
    runs(
        count, [&](std::size_t i) { return shade(row.values[i], most); },
        [&](std::size_t from, std::size_t to, unsigned dark) {
          box(from, to, fmt::format("h{}", dark), y, row_height - 1);
        });
    runs(
        count, [&](std::size_t i) { return row.held[i] ? 1 : 0; },
        [&](std::size_t from, std::size_t to, int) { box(from, to, "held", y + row_height - 5, 4); });
  }
  const double foot = head + body;
  const double label = x.high - text_width(map.x_label) - 12;
  for (const double tick : x.ticks()) {
    svg.line("tick", {x.at(tick), foot}, {x.at(tick), foot + 5});
    if (x.at(tick) < label) svg.text("quiet", {x.at(tick), foot + 18}, Anchor::middle, short_number(tick));
  }
  svg.text("quiet", {x.high, foot + 18}, Anchor::end, map.x_label);
  return std::move(svg).finish();
}

}  // namespace weir::fabric
