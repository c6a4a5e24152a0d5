// How one test's result is told: redis-benchmark's text, its one line, its CSV.
#pragma once

#include <string>
#include <vector>

#include "cli/benchmark/load.hpp"
#include "cli/benchmark/options.hpp"

namespace weir::benchmark {

std::string csv_header();
// What makes the figures mean less than they seem to; a sentence each.
std::vector<std::string> warnings(const LoadPlan&, const LoadResult&);
std::string told(const Options&, const Workload&, const LoadPlan&, const LoadResult&);

}  // namespace weir::benchmark
