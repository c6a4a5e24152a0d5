// Runs one workload against one server over one transport, and measures.
//
// Each thread has its own reactor, its share of the connections and of the requests, and meets the others
// only at the start and through the counters of LoadProgress. A connection keeps `pipeline` requests under
// way: it sends a batch, waits for all its replies, and sends the next from within the event that brought the
// last reply. A request's latency runs from the sending of its batch to the arrival of its reply.
//
// With a rate the loop is open (open_loop.hpp): requests are due at fixed times, whichever connection has a
// place sends them, and their latency runs from when they were due.
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
  std::uint64_t cpu_ns = 0;      // of the threads, user and system
  std::uint64_t nulls = 0;       // replies that say there is nothing
  LatencyHistogram lateness;     // of an open loop: by how much the generator itself sent late
  std::vector<NodeCount> nodes;  // of a cluster, in the order of their addresses
  std::uint64_t unsent = 0;      // of an open loop: due and never sent; in `latency`
                                 // with the time they waited

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
