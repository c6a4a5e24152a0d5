// Makes hosts: their namespaces and what is in them, and the switch that joins them.
#pragma once

#include <string>

#include "twin/hosts/namespaces.hpp"
#include "twin/hosts/network_plan.hpp"
#include "twin/hosts/requests.hpp"

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

  // Fills in what the hosts of a listing, which has all of them, have sent and received.
  Result<void> count_traffic(Listing& listing) const;

  // Pulls the cable out of the switch, or plugs it in: the host sees its interface lose its carrier.
  Result<void> plug(std::size_t index, bool in);

 private:
  HostMaker() = default;
  Result<void> return_to_switch() const;
  Result<void> lay_cable(const NetworkPlan& plan, std::size_t index) const;

  std::string hosts_file_;
  HostNamespaces switch_;
};

}  // namespace weir::hosts
