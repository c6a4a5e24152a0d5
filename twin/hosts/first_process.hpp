// The first process of the hosts' PID namespace: makes the hosts, reaps orphans, answers requests.
#pragma once

#include <string>

#include "twin/hosts/network_plan.hpp"

namespace weir::hosts {

// What the first process has from its parent.
struct Inherited {
  int listening;  // connections with requests arrive here
  int report;     // "made", or an error, goes here, and it is closed
  int keeper;     // closed by the kernel when the keeper ends
  int lifeline;   // closed when the process ends with which the network ends; -1: nothing is to be closed
};

[[noreturn]] void keep_hosts(const NetworkPlan& plan, const std::string& folder, const Inherited& inherited);

}  // namespace weir::hosts
