#include "twin/hosts/network_plan.hpp"

#include <algorithm>
#include <set>

namespace weir::hosts {
namespace {

constexpr std::uint32_t first_address = 0x0a4d0001;  // 10.77.0.1

bool is_letter_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9');
}

}  // namespace

std::vector<HostPlan> hosts_by_order(const std::vector<std::string>& names) {
  std::vector<HostPlan> hosts;
  // The last byte runs from 1 to 250, so that no address looks like a network's own or a broadcast.
  for (std::uint32_t index = 0; index < names.size(); ++index)
    hosts.push_back({names[index], first_address + (index / 250 << 8) + index % 250});
  return hosts;
}

std::string dotted(std::uint32_t ipv4) {
  return std::to_string(ipv4 >> 24) + "." + std::to_string(ipv4 >> 16 & 255) + "." +
         std::to_string(ipv4 >> 8 & 255) + "." + std::to_string(ipv4 & 255);
}

bool is_name(std::string_view name) {
  constexpr std::size_t max_length = 63;  // HOST_NAME_MAX is 64, a label of a domain name 63
  return !name.empty() && name.size() <= max_length && is_letter_or_digit(name.front()) &&
         std::ranges::all_of(name, [](char letter) {
           return is_letter_or_digit(letter) || letter == '-' || letter == '_' || letter == '.';
         });
}

Result<void> check(const NetworkPlan& plan) {
  if (plan.hosts.empty()) return failure(Cause::invalid_plan, "the network has no hosts; name at least one");
  if (plan.hosts.size() > NetworkPlan::max_hosts)
    return failure(Cause::invalid_plan, "the network has " + std::to_string(plan.hosts.size()) +
                                            " hosts, and one machine carries " +
                                            std::to_string(NetworkPlan::max_hosts) + "; make it smaller");
  if (plan.mtu_bytes < 1280 || plan.mtu_bytes > 65535)
    return failure(Cause::invalid_plan,
                   "an interface's MTU is 1280 to 65535 bytes, not " + std::to_string(plan.mtu_bytes));
  for (const auto& [name, value] : plan.variables)
    if (value.find_first_of(std::string("\n\0", 2)) != std::string::npos)
      return failure(Cause::invalid_plan, "the value of " + name + " has a newline in it");
  std::set<std::string_view> names{"localhost"};
  std::set<std::uint32_t> addresses;
  for (const HostPlan& host : plan.hosts) {
    if (!is_name(host.name))
      return failure(
          Cause::invalid_plan,
          "'" + host.name +
              "' cannot be a host's name: that has up to 63 letters, digits and '-', '_', '.', and "
              "begins with a letter or digit");
    if (!names.insert(host.name).second)
      return failure(Cause::invalid_plan, "two hosts are called '" + host.name + "'");
    if (!addresses.insert(host.ipv4).second)
      return failure(Cause::invalid_plan, "two hosts have the address " + dotted(host.ipv4));
  }
  return {};
}

std::string hosts_file(const NetworkPlan& plan) {
  std::string text = "127.0.0.1 localhost\n::1 localhost\n";
  for (const HostPlan& host : plan.hosts) text += dotted(host.ipv4) + " " + host.name + "\n";
  return text;
}

}  // namespace weir::hosts
