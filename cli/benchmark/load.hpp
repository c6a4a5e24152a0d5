// Runs one workload against one server over one transport, and measures.
//
// Each thread has its own reactor, its share of the connections and of the requests, and meets the others
// only at the start and through the counters of LoadProgress. A connection keeps `pipeline` requests under
// way: it sends a batch, waits for all its replies, and sends the next from within the event that brought the
// last reply. A request's latency runs from the sending of its batch to the arrival of its reply.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/benchmark/histogram.hpp"
#include "cli/benchmark/workload.hpp"
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
  std::uint64_t keyspace = 0;  // 0: no random digits
  std::uint64_t seed = 1;
  bool keep_alive = true;
  std::vector<int> pinned_cpus;  // thread i runs on pinned_cpus[i % size]; empty: where the kernel likes
  client::Milliseconds connect_limit{5000};
  client::Milliseconds reply_limit{30'000};      // without any reply for so long it is over: an error
  client::Milliseconds last_reply_limit{5'000};  // the same when duration_s has passed
  // Set by whoever wants no more (a signal handler too): the load ends without waiting for what is under way,
  // and its result is what was answered so far. Carries nothing but itself, so relaxed.
  const std::atomic<bool>* stop = nullptr;

  bool stopped() const { return stop && stop->load(std::memory_order_relaxed); }
};

struct LoadResult {
  LatencyHistogram latency;
  std::uint64_t requests = 0;
  double elapsed_s = 0;
  std::uint64_t cpu_ns = 0;  // of the threads, user and system

  double requests_per_second() const { return elapsed_s > 0 ? static_cast<double>(requests) / elapsed_s : 0; }
};

// For someone who looks on while the load runs. Called on the calling thread, four times a second.
class LoadWatcher {
 public:
  virtual void running(std::uint64_t requests_done, double elapsed_s) = 0;

 protected:
  ~LoadWatcher() = default;
};

// An error reply from the server ends the run with an error, as does a lost connection; not so once it was
// stopped with results.
client::Result<LoadResult> run_load(const LoadPlan&, const Workload&, LoadWatcher* = nullptr);

}  // namespace weir::benchmark
