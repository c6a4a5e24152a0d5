// Makes hosts: their namespaces and what is in them, and the switch that joins them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "twin/hosts/namespaces.hpp"
#include "twin/hosts/network_plan.hpp"
#include "twin/hosts/requests.hpp"
#include "twin/hosts/routing_switches.hpp"

namespace weir::hosts {

// What all hosts of a network have in common. Makes the mounts and the switch; call it as the first process
// of a new PID namespace, with one thread.
class HostMaker {
 public:
  // `hosts_file`: a path; it becomes /etc/hosts of all hosts.
  static Result<HostMaker> make(const NetworkPlan& plan, std::string hosts_file);

  // Makes the host with this index in the plan. Leaves the process in the switch's namespaces.
  // The descriptors are those of `network` to `ipc`; the other two are the same for all hosts.
  Result<HostNamespaces> make_host(const NetworkPlan& plan, std::size_t index);

  // Joins the switches of a routed network. All hosts have been made.
  Result<void> join_switches(const NetworkPlan& plan);

  // Fills in what the hosts of a listing, which has all of them and all cables, have sent and received.
  Result<void> count_traffic(const NetworkPlan& plan, Listing& listing) const;

  // Pulls a cable out of its switches, or plugs it in: a host sees its interface lose its carrier. `plugged`:
  // all cables, afterwards; without switches that route, those of the hosts.
  Result<void> plug(const NetworkPlan& plan, std::size_t cable, const std::vector<bool>& plugged);

 private:
  HostMaker() = default;
  Result<void> return_to_switch() const;
  Result<void> lay_cable(const NetworkPlan& plan, std::size_t index) const;

  std::string hosts_file_;
  HostNamespaces switch_;
  std::optional<RoutingSwitches> switches_;  // of a routed network
};

}  // namespace weir::hosts
