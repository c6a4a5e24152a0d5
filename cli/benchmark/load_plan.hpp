// What a load is to be: where to, by how many connections, how much of it and how fast.
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
  std::optional<double> duration_s;  // stop then even if requests are left
  std::size_t pipeline = 1;
  std::size_t threads = 1;
  std::optional<double> rate_per_s;  // of the whole load: an open loop, which wants keep_alive
  std::uint64_t keyspace = 0;        // 0: no random digits
  KeyDistribution keys;
  std::uint64_t seed = 1;
  bool keep_alive = true;
  std::vector<ClusterNode> nodes;  // not empty: the primaries of a cluster, of
                                   // which `endpoint` is a node
  std::vector<int> pinned_cpus;    // thread i runs on pinned_cpus[i % size];
                                   // empty: where the kernel likes
  client::Milliseconds connect_limit{5000};
  client::Milliseconds reply_limit{30'000};      // without any reply for so long it is over: an error
  client::Milliseconds last_reply_limit{5'000};  // the same when duration_s has passed
  // Set by whoever wants no more (a signal handler too): the load ends without waiting for what is under way,
  // and its result is what was answered so far. Carries nothing but itself, so relaxed.
  const std::atomic<bool>* stop = nullptr;

  bool stopped() const { return stop && stop->load(std::memory_order_relaxed); }
};

}  // namespace weir::benchmark
