#include "fabric/picture/svg.hpp"

#include "fabric/picture/page.hpp"

namespace weir::fabric {

Svg::Svg(std::string_view css, double width, double height, std::string_view label) {
  raw("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{}\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">\n",
      css, width, height, escaped(label));
}

void Svg::rect(std::string_view css, double x, double y, double width, double height, std::string_view tip) {
  raw("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"", css, x, y, width,
      height);
  close("rect", tip);
}

void Svg::line(std::string_view css, Point from, Point to, std::string_view tip) {
  raw("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"", css, from.x, from.y, to.x,
      to.y);
  close("line", tip);
}

void Svg::circle(std::string_view css, Point middle, double radius) {
  raw("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>\n", css, middle.x, middle.y, radius);
}

void Svg::polyline(std::string_view css, std::span<const Point> list) { points("polyline", css, list); }
void Svg::area(std::string_view css, std::span<const Point> list) { points("polygon", css, list); }

void Svg::points(std::string_view element, std::string_view css, std::span<const Point> list) {
  raw("<{} class=\"{}\" points=\"", element, css);
  for (const auto& point : list) raw("{:.1f},{:.1f} ", point.x, point.y);
  out_ += "\"/>\n";
}

void Svg::text(std::string_view css, Point at, Anchor anchor, std::string_view words) {
  const auto* name = anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
  raw("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", css, at.x, at.y, name,
      escaped(words));
}

void Svg::close(std::string_view element, std::string_view tip) {
  if (tip.empty())
    out_ += "/>\n";
  else
    raw("><title>{}</title></{}>\n", escaped(tip), element);
}

std::string Svg::finish() && {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace weir::fabric
