#include "fabric/sim/flow_order.hpp"

#include <numeric>

namespace weir::fabric::sim {

FlowOrder::FlowOrder(const Experiment& run) : run_(run) {
  if (run.order.empty()) return;
  const std::size_t places = run.flows.size() + run.pauses.size();
  first_.resize(places + 1);
  waits_for_.resize(places);
  successors_.resize(run.order.size());
  for (const Precedence& one : run.order) {
    ++first_[place(one.before) + 1];
    ++waits_for_[place(one.after)];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<std::uint32_t> filled(first_.begin(), first_.end() - 1);
  for (const Precedence& one : run.order) successors_[filled[place(one.before)]++] = one.after;
}

}  // namespace weir::fabric::sim
