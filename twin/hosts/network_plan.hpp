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

struct NetworkPlan {
  // A bridge has 1,024 ports.
  static constexpr std::size_t max_hosts = 1000;

  std::vector<HostPlan> hosts;
  unsigned ipv4_prefix = 16;
  unsigned mtu_bytes = 9000;  // of each host's interface: a RoCE MTU of 4,096 fits
  // Of each TCP socket, in both directions, unless its program sets them; 0: as the kernel adapts them.
  std::uint32_t tcp_buffer_bytes = 0;
  std::string title{};  // for people; one line
  // What programs find in their environment; "{host}" in a value stands for the host's name. No newlines.
  std::vector<std::pair<std::string, std::string>> variables{};
};

// 10.77.0.1 and so on, in the order of the names.
std::vector<HostPlan> hosts_by_order(const std::vector<std::string>& names);

std::string dotted(std::uint32_t ipv4);

// Letters, digits, '-', '_' and '.', 63 at most, a letter or digit first: what a host's name and a network's
// name may be.
bool is_name(std::string_view name);

// Names and addresses are valid and unique, and there are neither none nor too many.
Result<void> check(const NetworkPlan& plan);

// The text of /etc/hosts in every host.
std::string hosts_file(const NetworkPlan& plan);

}  // namespace weir::hosts
