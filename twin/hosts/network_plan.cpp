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

std::unexpected<Error> bad_name(const std::string& kind, const std::string& name) {
  return failure(Cause::invalid_plan, "'" + name + "' cannot be a " + kind +
                                          "'s name: that has up to 63 letters, digits and '-', '_', '.', and "
                                          "begins with a letter or digit");
}

Result<void> check_switches(const NetworkPlan& plan, std::set<std::string_view>& names) {
  const auto too_many = [](std::size_t count, const std::string& what, std::size_t most) {
    return failure(Cause::invalid_plan, "the network has " + std::to_string(count) + " " + what +
                                            ", and one machine carries " + std::to_string(most) +
                                            "; make it smaller");
  };
  if (plan.switches.size() > NetworkPlan::max_switches)
    return too_many(plan.switches.size(), "switches", NetworkPlan::max_switches);
  if (plan.cables.size() > NetworkPlan::max_cables)
    return too_many(plan.cables.size(), "cables", NetworkPlan::max_cables);
  for (const std::string& name : plan.switches) {
    if (!is_name(name)) return bad_name("switch", name);
    if (!names.insert(name).second)
      return failure(Cause::invalid_plan, "two nodes are called '" + name + "'");
  }
  const std::size_t hosts = plan.hosts.size(), nodes = hosts + plan.switches.size();
  bool joined = plan.switches.empty() ? plan.cables.empty() : plan.cables.size() >= hosts;
  for (std::size_t index = 0; joined && index < plan.cables.size(); ++index) {
    const auto& [a, b] = plan.cables[index];
    joined = (index < hosts ? a == index : a >= hosts && a < nodes && a != b) && b >= hosts && b < nodes;
  }
  if (!joined) return failure(Cause::invalid_plan, "a cable joins what it should not");
  return {};
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
    if (!is_name(host.name)) return bad_name("host", host.name);
    if (!names.insert(host.name).second)
      return failure(Cause::invalid_plan, "two hosts are called '" + host.name + "'");
    if (!addresses.insert(host.ipv4).second)
      return failure(Cause::invalid_plan, "two hosts have the address " + dotted(host.ipv4));
  }
  return check_switches(plan, names);
}

std::string hosts_file(const NetworkPlan& plan) {
  std::string text = "127.0.0.1 localhost\n::1 localhost\n";
  for (const HostPlan& host : plan.hosts) text += dotted(host.ipv4) + " " + host.name + "\n";
  return text;
}

std::string topology_file(const NetworkPlan& plan, const std::vector<bool>& plugged) {
  constexpr const char* only = "switch";
  std::string text;
  for (const std::string& name : plan.switches) text += "switch " + name + "\n";
  if (!plan.is_routed()) text += std::string("switch ") + only + "\n";
  for (const HostPlan& host : plan.hosts) text += "host " + host.name + " " + dotted(host.ipv4) + "\n";
  for (std::size_t index = 0; index < plugged.size(); ++index) {
    const std::string ends =
        plan.is_routed() ? plan.name_of(plan.cables[index].a) + " " + plan.name_of(plan.cables[index].b)
                         : plan.hosts[index].name + " " + only;
    text += "cable " + ends + (plugged[index] ? " up\n" : " down\n");
  }
  return text;
}

}  // namespace weir::hosts
