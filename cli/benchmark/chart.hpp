// Draws a comparison: throughput above, latency below. gnuplot draws it from a script that is generated
// here and passed through a pipe.
#pragma once

#include <string>

#include "cli/benchmark/compare.hpp"

namespace weir::benchmark {

// `file` must end in .svg or .png.
std::string chart_script(const Comparison&, const std::string& file);
// Call before the load, so that a path that cannot be written does not cost a measurement. Leaves no file.
client::Result<void> can_draw_into(const std::string& file);
client::Result<void> draw_chart(const Comparison&, const std::string& file);

}  // namespace weir::benchmark
