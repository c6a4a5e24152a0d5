// The switches of a routed network: a network namespace each, which forwards IPv4 by equal-cost routes, as
// the switches of a datacentre do. A flow keeps its way, chosen by its addresses and UDP or TCP ports, until
// the ways change.
//
// For the process that makes the hosts, with one thread: it visits the switches and returns to the network
// namespace in which `make` was called.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "link/unique_fd.hpp"
#include "twin/hosts/links.hpp"
#include "twin/hosts/network_plan.hpp"
#include "twin/hosts/switch_routes.hpp"

namespace weir::hosts {

class RoutingSwitches {
 public:
  static Result<RoutingSwitches> make(const NetworkPlan& plan);

  // The network namespace at the other end of a host's cable, whose end there is `port_of(host)`.
  int network_at(const NetworkPlan& plan, std::size_t host) const;

  // Lays the cables between switches and sets all routes. The hosts' cables have been laid.
  Result<void> join(const NetworkPlan& plan);

  // Pulls or plugs in `cable`, and leads packets another way, as soon as this returns. `plugged`: all cables,
  // afterwards.
  Result<void> plug(const NetworkPlan& plan, std::size_t cable, const std::vector<bool>& plugged);

  // Of the switch ports, by name. Cables between two switches have two ends of the same name: that of the
  // cable's `a` counts.
  Result<std::map<std::string, Links::Counters>> counters(const NetworkPlan& plan) const;

 private:
  RoutingSwitches() = default;
  template <class Visit>
  Result<void> visit(std::size_t node, Visit&& at) const;
  Result<void> set_up_switch(std::size_t index) const;
  Result<void> apply(const NetworkPlan& plan, SwitchRoutes routes, const std::vector<std::size_t>& anew);

  link::UniqueFd home_;
  std::vector<link::UniqueFd> networks_;
  SwitchRoutes routes_;  // as the kernel has them
};

// The interface of a switch at which that cable ends.
std::string port_of(std::size_t cable);

}  // namespace weir::hosts
