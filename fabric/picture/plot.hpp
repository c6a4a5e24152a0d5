// Line plots. All time axes of a page are equally wide, so that plots below each other can be compared.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weir::fabric {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points{};  // ascending x
  bool steps = false;                               // keeps its value until the next point
};

struct Band {  // a marked range of x
  double from, to;
};

struct Limit {  // a marked value of y
  std::string name;
  double y;
};

struct Plot {
  std::string title{};
  std::string x_label{}, y_label{};
  bool log_x = false, log_y = false;
  bool dots = false;
  bool filled = false;  // fill the area below each line
  std::vector<Line> lines{};
  std::vector<Band> bands{};
  std::string band_name{};
  std::vector<Limit> limits{};
  std::vector<std::string> x_names{};  // names at x = 0, 1, 2, ... in place of numbers
  double x_from = 0, x_to = 0;         // both 0: the range of the lines. The rest is cut off.
};

std::string svg(const Plot& plot);

}  // namespace weir::fabric
