// What a pool counts, and its page for Prometheus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/method_stats.hpp"
#include "rpc/pool/pooled_server.hpp"

namespace weir::rpc {

struct PoolStats {
  std::uint64_t calls = 0;     // that have ended
  std::uint64_t failures = 0;  // of them, with whatever error
  std::uint64_t retries = 0;
  std::uint64_t retries_refused = 0;  // for want of budget
  std::uint64_t hedges = 0;
  std::uint64_t hedges_won = 0;      // answered before the first attempt
  std::uint64_t hedges_refused = 0;  // for want of tokens
  std::uint64_t ejections = 0;
  LatencyHistogram latency;  // of calls, with all their attempts
};

// Text of the Prometheus exposition format, version 0.0.4. `pool` tells several pools of a program apart.
std::string prometheus_text(std::string_view pool, const PoolStats& stats,
                            const std::vector<PooledServer>& servers);

}  // namespace weir::rpc
