// Where a thread's connections lead: to the one server, or each to a primary of
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
  std::shared_ptr<RequestRing> requests;  // for all connections that change nothing in it
  std::uint64_t answered = 0;
  std::uint64_t redirected = 0;  // answered with MOVED or ASK, and sent again
};

class LoadTargets {
 public:
  // Both outlive it.
  LoadTargets(const LoadPlan& plan, const Workload& workload);

  // Of the thread's `index`th connection. It stays where it is, and so do
  // connections that lead to it.
  LoadTarget& of(std::size_t index) { return *current_[index % current_.size()]; }
  // Asks the nodes, one after the other, who has which slots now; waits at most
  // a second for each. False: none of them could tell, and problem() says why.
  bool refresh();
  const std::string& problem() const { return problem_; }
  const std::deque<LoadTarget>& all() const { return all_; }  // also those that have no slots any more

 private:
  void take(const std::vector<ClusterNode>& nodes);

  const LoadPlan& plan_;
  const Workload& workload_;
  std::deque<LoadTarget> all_;
  std::vector<LoadTarget*> current_;
  std::string problem_;
};

}  // namespace weir::benchmark
