// The report on one test: redis-benchmark's text, its single line, or its CSV.
#pragma once

#include <string>
#include <vector>

#include "cli/benchmark/load.hpp"
#include "cli/benchmark/options.hpp"

namespace weir::benchmark {

std::string csv_header();
// Reasons why the figures mean less than they seem to, one sentence each.
std::vector<std::string> warnings(const LoadPlan&, const LoadResult&);
std::string format_result(const Options&, const Workload&, const LoadPlan&, const LoadResult&);

}  // namespace weir::benchmark
