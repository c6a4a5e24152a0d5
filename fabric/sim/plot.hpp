// Line plots as SVG text, to stand inside an HTML page; colours and fonts come from the page's style sheet
// (plot_style).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::fabric::sim {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points{};  // ascending x
  bool steps = false;                               // holds its value until the next point
};

struct Band {  // a stretch of x that is marked
  double from, to;
};

struct Plot {
  std::string title{};
  std::string x_label{}, y_label{};
  bool log_x = false, log_y = false;
  bool dots = false;
  std::vector<Line> lines{};
  std::vector<Band> bands{};
  std::string band_name{};
  double x_from = 0, x_to = 0;  // both 0: what the lines span
};

std::string svg(const Plot& plot);
extern const std::string_view plot_style;

// 1234567 -> "1.23M"
std::string short_number(double value);
std::string html_escaped(std::string_view text);

}  // namespace weir::fabric::sim
