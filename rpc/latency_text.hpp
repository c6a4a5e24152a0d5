// A LatencyHistogram's counts as samples of a histogram for Prometheus (in method_stats.cpp). Internal to
// rpc/.
#pragma once

#include <cstdint>
#include <span>

#include "metrics/prometheus.hpp"

namespace weir::rpc {

// Samples of the metric that was begun last, in seconds. `counts`: LatencyHistogram::counts(), or nothing.
void write_latency(metrics::PrometheusText& text, const metrics::Labels& labels,
                   std::span<const std::uint64_t> counts, std::uint64_t total_ns);

}  // namespace weir::rpc
