// One drawing as SVG text for an HTML page (page.hpp). Elements get their colours from classes of the page's
// style sheet. Coordinates are the drawing's own, rounded to a tenth of a unit.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weir::fabric {

struct Point {
  double x = 0, y = 0;
};

enum class Anchor { start, middle, end };

class Svg {
 public:
  // `label` describes the drawing to readers who cannot see it.
  Svg(std::string_view css, double width, double height, std::string_view label);

  // A `tip` that is not empty appears when the pointer rests on the element.
  void rect(std::string_view css, double x, double y, double width, double height, std::string_view tip = {});
  void line(std::string_view css, Point from, Point to, std::string_view tip = {});
  void circle(std::string_view css, Point middle, double radius);
  // Through all points. An area is closed and filled by its class.
  void polyline(std::string_view css, std::span<const Point> points);
  void area(std::string_view css, std::span<const Point> points);
  void text(std::string_view css, Point at, Anchor anchor, std::string_view words);

  // Adds elements unchanged: definitions, or attributes that have no function here.
  template <class... Args>
  void raw(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  std::string finish() &&;

 private:
  void points(std::string_view element, std::string_view css, std::span<const Point> list);
  void close(std::string_view element, std::string_view tip);
  std::string out_;
};

// The approximate width of a text of 12 px, on the generous side because fonts differ.
inline double text_width(std::string_view words) { return 6.9 * static_cast<double>(words.size()); }

}  // namespace weir::fabric
