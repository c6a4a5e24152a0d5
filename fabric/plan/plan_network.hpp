// Makes the plan (plan.hpp) of a whole network.
#pragma once

#include "fabric/plan/plan.hpp"
#include "fabric/topology/network.hpp"

namespace weir::fabric {

struct PlanOptions {
  FailureScope failures = FailureScope::each_link;
};

// The plan keeps a pointer to the network, which must outlive it.
Plan plan_network(const Network& network, const PlanOptions& options = {});

}  // namespace weir::fabric
