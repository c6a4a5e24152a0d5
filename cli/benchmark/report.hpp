// How one test's result is told: redis-benchmark's text, its one line, its CSV.
#pragma once

#include <string>

#include "cli/benchmark/load.hpp"
#include "cli/benchmark/options.hpp"

namespace weir::benchmark {

std::string csv_header();
std::string told(const Options&, const Workload&, const LoadPlan&, const LoadResult&);

}  // namespace weir::benchmark
