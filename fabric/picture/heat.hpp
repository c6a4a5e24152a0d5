// Rows over time, each moment the darker the more: where and when, of more rows than lines in a plot could be
// told apart.
#pragma once

#include <string>
#include <vector>

namespace weir::fabric {

struct HeatRow {
  std::string name;
  std::vector<double> values;  // one a moment; 0: nothing is drawn
  std::vector<bool> held;      // the same; underlined in red
};

struct HeatMap {
  std::string title{}, x_label{};
  std::string value_name{}, held_name{};  // what is darker; what is underlined
  std::vector<double> moments{};          // ascending; each lasts until the next, the last until x_to
  double x_to = 0;
  std::vector<HeatRow> rows{};
};

std::string svg(const HeatMap& map);

}  // namespace weir::fabric
