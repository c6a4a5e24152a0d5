// Where a thread's connections go: to the one server, or each to a primary of
// a cluster.
//
// Threading: the load's thread.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "cli/benchmark/load_plan.hpp"
#include "cli/benchmark/request_ring.hpp"
#include "cli/benchmark/workload.hpp"

namespace weir::benchmark {

struct LoadTarget {
  client::Endpoint endpoint;
  std::shared_ptr<RequestRing> requests;  // shared by all connections that change nothing in it
  std::uint64_t answered = 0;
  std::uint64_t redirected = 0;  // answered with MOVED or ASK, and sent again
};

class LoadTargets {
 public:
  // Both must outlive it.
  LoadTargets(const LoadPlan& plan, const Workload& workload);

  // The target of the thread's connection number `index`. Its address is stable,
  // so connections may keep it.
  LoadTarget& of(std::size_t index) { return *current_[index % current_.size()]; }
  // Asks the nodes in turn which slots each has now, waiting at most
  // a second for each. False: no node could tell; problem() gives the reason.
  bool refresh();
  const std::string& problem() const { return problem_; }
  const std::deque<LoadTarget>& all() const { return all_; }  // including nodes without slots

 private:
  void take(const std::vector<ClusterNode>& nodes);

  const LoadPlan& plan_;
  const Workload& workload_;
  std::deque<LoadTarget> all_;
  std::vector<LoadTarget*> current_;
  std::string problem_;
};

}  // namespace weir::benchmark
