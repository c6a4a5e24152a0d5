// The report on one test: redis-benchmark's text, its single line, or its CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/benchmark/load.hpp"
#include "cli/benchmark/options.hpp"

namespace weir::benchmark {

std::string csv_header();
// Reasons why the figures mean less than they seem to, one sentence each.
std::vector<std::string> warnings(const LoadPlan&, const LoadResult&);
// If this program waited for a CPU for so much of the time that its latencies are not the server's alone.
std::optional<std::string> warning_of_cpu_wait(double share);
std::string format_result(const Options&, const Workload&, const LoadPlan&, const LoadResult&);

}  // namespace weir::benchmark
