// The parameters of a load: where to, over how many connections, how much and how fast.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "cli/benchmark/cluster_nodes.hpp"
#include "cli/benchmark/key_numbers.hpp"
#include "cli/client/connection.hpp"
#include "cli/client/session.hpp"

namespace weir::benchmark {

struct LoadPlan {
  client::Endpoint endpoint;
  client::Login login;
  std::size_t clients = 50;
  std::uint64_t requests = 100'000;
  std::optional<double> duration_s;  // stop after this time even if requests are left
  std::size_t pipeline = 1;
  std::size_t threads = 1;
  std::optional<double> rate_per_s;  // for the whole load: an open loop, which needs keep_alive
  std::uint64_t keyspace = 0;        // 0: no random digits
  KeyDistribution keys;
  std::uint64_t seed = 1;
  bool keep_alive = true;
  std::vector<ClusterNode> nodes;  // not empty: the primaries of a cluster to which
                                   // `endpoint` belongs
  std::vector<int> pinned_cpus;    // thread i runs on pinned_cpus[i % size];
                                   // empty: the kernel decides
  client::Milliseconds connect_limit{5000};
  client::Milliseconds reply_limit{30'000};      // without any reply for so long the load fails
  client::Milliseconds last_reply_limit{5'000};  // likewise, after duration_s has passed
  // Set to end the load, also by a signal handler. The load does not wait for outstanding requests, and its
  // result covers the answered ones. The flag carries no other data, so relaxed.
  const std::atomic<bool>* stop = nullptr;

  bool stopped() const { return stop && stop->load(std::memory_order_relaxed); }
};

}  // namespace weir::benchmark
