// A comparison as a picture: throughput above, latency below, drawn by gnuplot from a script that is
// generated here and given to it through a pipe.
#pragma once

#include <string>

#include "cli/benchmark/compare.hpp"

namespace weir::benchmark {

// `file` ends in .svg or .png.
std::string chart_script(const Comparison&, const std::string& file);
// Before the load runs, so that a path that cannot be written costs nobody a measurement. Leaves nothing.
client::Result<void> can_draw_into(const std::string& file);
client::Result<void> draw_chart(const Comparison&, const std::string& file);

}  // namespace weir::benchmark
