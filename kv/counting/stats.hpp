// What the server has counted since it started or since CONFIG RESETSTAT, and the current rates.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/node_hash_map.h>

#include <cstdint>
#include <string>

#include "kv/counting/latency_histogram.hpp"
#include "kv/counting/recent_rate.hpp"

namespace weir::kv {

struct Command;

struct Stats {
  struct Calls {
    std::uint64_t calls = 0, rejected = 0, failed = 0;
    std::uint64_t cycles = 0;
    LatencyHistogram latency;  // of calls that did not block, and of those that served a blocked client
  };

  Stats() = default;
  Stats& operator=(Stats&&) = default;  // no copies: `last_calls_` points into `by_command`

  std::uint64_t connections = 0, rejected = 0, commands = 0, bytes_in = 0, bytes_out = 0;
  std::uint64_t expired = 0, expired_fields = 0, evicted = 0, evicted_clients = 0, hits = 0, misses = 0,
                error_replies = 0;
  absl::node_hash_map<const Command*, Calls> by_command;
  absl::btree_map<std::string, std::uint64_t> by_error;  // the code: "WRONGTYPE"

  // Clients tend to send the same command again.
  Calls& calls_of(const Command& command) {
    if (last_command_ != &command) {
      last_command_ = &command;
      last_calls_ = &by_command[&command];
    }
    return *last_calls_;
  }
  void count_error(const std::string& code) { ++by_error[code]; }

 private:
  const Command* last_command_ = nullptr;
  Calls* last_calls_ = nullptr;
};

struct RecentRates {
  RecentRate commands, input, output;

  void sample(std::int64_t now_ms, const Stats& stats) {
    commands.sample(now_ms, stats.commands);
    input.sample(now_ms, stats.bytes_in);
    output.sample(now_ms, stats.bytes_out);
  }
};

}  // namespace weir::kv
