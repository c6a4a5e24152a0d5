// Runs one workload against one server over one transport, and measures.
//
// Each thread has its own reactor and its share of the connections and requests. Threads meet only at the
// start and through the counters of LoadProgress. A connection keeps `pipeline` requests under way: it sends
// a batch, waits for all replies, and sends the next batch within the event of the last reply. A request's
// latency runs from sending its batch to the arrival of its reply.
//
// With a rate the loop is open (open_loop.hpp): requests are due at fixed times, any connection with room
// sends them, and their latency runs from when they were due.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/benchmark/histogram.hpp"
#include "cli/benchmark/load_plan.hpp"
#include "cli/benchmark/load_share.hpp"
#include "cli/benchmark/workload.hpp"
#include "cli/client/error.hpp"

namespace weir::benchmark {

struct LoadResult {
  LatencyHistogram latency;
  std::uint64_t requests = 0;
  double elapsed_s = 0;
  std::uint64_t cpu_ns = 0;       // of the threads, user and system
  std::uint64_t cpu_wait_ns = 0;  // of the thread that others kept from a CPU for longest
  std::uint64_t nulls = 0;        // null replies
  LatencyHistogram lateness;      // of an open loop: how late the generator itself sent
  std::vector<NodeCount> nodes;   // of a cluster, ordered by address
  std::uint64_t unsent = 0;       // of an open loop: due but never sent; counted in `latency`
                                  // with their waiting time

  double cpu_wait_share() const {
    return elapsed_s > 0 ? static_cast<double>(cpu_wait_ns) / 1e9 / elapsed_s : 0;
  }
  double requests_per_second() const { return elapsed_s > 0 ? static_cast<double>(requests) / elapsed_s : 0; }
};

// Observes the load while it runs. Called on the calling thread, four times a second.
class LoadWatcher {
 public:
  virtual void running(std::uint64_t requests_done, double elapsed_s) = 0;

 protected:
  ~LoadWatcher() = default;
};

// An error reply or a lost connection ends the run with an error, unless the run was
// stopped and has results.
client::Result<LoadResult> run_load(const LoadPlan&, const Workload&, LoadWatcher* = nullptr);

}  // namespace weir::benchmark
