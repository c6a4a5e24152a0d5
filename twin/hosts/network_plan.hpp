// Which hosts there are to be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "twin/hosts/host_error.hpp"

namespace weir::hosts {

struct HostPlan {
  std::string name;
  std::uint32_t ipv4 = 0;  // as a number: 10.77.0.1 is 0x0a4d0001
};

// Two nodes that a cable joins: hosts by their index, then switches.
struct CablePlan {
  std::size_t a = 0, b = 0;
};

struct NetworkPlan {
  // A bridge has 1,024 ports.
  static constexpr std::size_t max_hosts = 1000, max_switches = 250, max_cables = 8000;

  std::vector<HostPlan> hosts;
  unsigned ipv4_prefix = 16;
  unsigned mtu_bytes = 9000;  // of each host's interface: a RoCE MTU of 4,096 fits
  // Of each TCP socket, in both directions, unless its program sets them; 0: as the kernel adapts them.
  std::uint32_t tcp_buffer_bytes = 0;
  std::string title{};  // for people; one line
  // Switches that route between the hosts, and their cables: the one with a host's index joins that host to a
  // switch, the rest join two switches. None: all hosts are on one switch, which forwards frames.
  std::vector<std::string> switches{};
  std::vector<CablePlan> cables{};
  bool is_routed() const { return !switches.empty(); }
  const std::string& name_of(std::size_t node) const {
    return node < hosts.size() ? hosts[node].name : switches[node - hosts.size()];
  }
  // What programs find in their environment; "{host}" in a value stands for the host's name. No newlines.
  std::vector<std::pair<std::string, std::string>> variables{};
};

// 10.77.0.1 and so on, in the order of the names.
std::vector<HostPlan> hosts_by_order(const std::vector<std::string>& names);

std::string dotted(std::uint32_t ipv4);

// Letters, digits, '-', '_' and '.', 63 at most, a letter or digit first: what a host's name and a network's
// name may be.
bool is_name(std::string_view name);

// Names and addresses are valid and unique, there are neither none nor too many, and cables join what they
// should.
Result<void> check(const NetworkPlan& plan);

// The text of /etc/hosts in every host.
std::string hosts_file(const NetworkPlan& plan);

// What a host's programs may know of the network, a line each: "switch NAME", "host NAME ADDRESS" and
// "cable NODE NODE up|down", for each cable that state. On one switch, that is called "switch".
std::string topology_file(const NetworkPlan& plan, const std::vector<bool>& plugged);

}  // namespace weir::hosts
