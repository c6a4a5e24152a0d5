// Rows over time, darker for higher values. Shows where and when, for more rows than a plot
// could show as separate lines.
#pragma once

#include <string>
#include <vector>

namespace weir::fabric {

struct HeatRow {
  std::string name;
  std::vector<double> values;  // one per moment; 0: nothing is drawn
  std::vector<bool> held;      // likewise; underlined in red
};

struct HeatMap {
  std::string title{}, x_label{};
  std::string value_name{}, held_name{};  // meaning of dark, and of the underline
  std::vector<double> moments{};          // ascending; each lasts until the next one, the last until x_to
  double x_from = 0, x_to = 0;            // the rest is cut off
  std::vector<HeatRow> rows{};
};

std::string svg(const HeatMap& map);

}  // namespace weir::fabric
