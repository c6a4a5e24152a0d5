#include "cli/benchmark/load_targets.hpp"

#include <algorithm>

namespace weir::benchmark {

LoadTargets::LoadTargets(const LoadPlan& plan, const Workload& workload) : plan_(plan), workload_(workload) {
  if (!plan.nodes.empty()) {
    take(plan.nodes);
    return;
  }
  all_.push_back({plan.endpoint, std::make_shared<RequestRing>(workload, plan.pipeline, plan.seed)});
  current_.push_back(&all_.back());
}

void LoadTargets::take(const std::vector<ClusterNode>& nodes) {
  current_.clear();
  for (const auto& node : nodes) {
    auto known = std::ranges::find_if(all_, [&](const LoadTarget& target) {
      return target.endpoint.host == node.endpoint.host && target.endpoint.port == node.endpoint.port;
    });
    if (known == all_.end()) {
      all_.push_back({node.endpoint, nullptr});
      known = std::prev(all_.end());
    }
    known->requests = std::make_shared<RequestRing>(workload_, plan_.pipeline, plan_.seed, node.tags);
    current_.push_back(&*known);
  }
}

bool LoadTargets::refresh() {
  constexpr client::Milliseconds patience{1000};
  auto asked = plan_.nodes;
  asked.push_back({plan_.endpoint, {}});
  for (const auto* target : current_) asked.push_back({target->endpoint, {}});
  for (const auto& node : asked) {
    auto nodes = find_cluster_nodes(node.endpoint, plan_.login, patience);
    if (nodes) {
      take(*nodes);
      return true;
    }
    problem_ = address_of(node.endpoint) + ": " + nodes.error().what;
  }
  return false;
}

}  // namespace weir::benchmark
