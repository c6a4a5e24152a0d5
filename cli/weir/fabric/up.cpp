// `weir fabric up`: starts the hosts of a network file, or some without one.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cli/weir/command.hpp"
#include "cli/weir/fabric/fabric_command.hpp"
#include "cli/weir/whole_file.hpp"
#include "fabric/topology/read_network.hpp"
#include "faults/language.hpp"
#include "twin/hosts/folder.hpp"
#include "twin/hosts/keeper.hpp"
#include "twin/hosts/running_network.hpp"

namespace weir::command {
namespace {

namespace fs = std::filesystem;

constexpr int invalid_network_file = 3;

struct UpCommand {
  std::string name, hosts, mtu, captures, faults_file, faults;
  bool json = false, flat = false;
};

// Either an exit status, after a complaint, or nothing: it went well.
using Ended = std::optional<int>;

int wrong(const std::string& what, int status = fabric_failed) { return complain("fabric up", what, status); }

std::optional<unsigned> read_count(const std::string& word) {
  unsigned number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  if (read.ec != std::errc{} || read.ptr != word.data() + word.size()) return std::nullopt;
  return number;
}

Ended count_hosts(const UpCommand& command, hosts::NetworkPlan& plan) {
  const auto count = read_count(command.hosts);
  if (!count || *count == 0 || *count > hosts::NetworkPlan::max_hosts)
    return wrong(fmt::format("--hosts wants a number from 1 to {}, not '{}'", hosts::NetworkPlan::max_hosts,
                             command.hosts),
                 fabric_misused);
  std::vector<std::string> names;
  for (unsigned number = 1; number <= *count; ++number) names.push_back(fmt::format("h{}", number));
  plan.hosts = hosts::hosts_by_order(names);
  plan.title = fmt::format("{} hosts on one switch", *count);
  return std::nullopt;
}

// The switches of the file, and their cables. One is as well without routes.
Ended add_switches(const fabric::Network& network, hosts::NetworkPlan& plan) {
  std::vector<std::size_t> index_of(network.nodes.size());  // in the plan
  std::size_t hosts = 0;
  for (std::size_t node = 0; node < network.nodes.size(); ++node) {
    if (network.nodes[node].kind == fabric::NodeKind::host) {
      index_of[node] = hosts++;
    } else {
      index_of[node] = plan.hosts.size() + plan.switches.size();
      plan.switches.push_back(network.nodes[node].name);
    }
  }
  plan.cables.resize(hosts);
  for (const auto& node : network.nodes) {
    if (node.kind != fabric::NodeKind::host) continue;
    const auto first = network.neighbor(node.ports.front());
    const std::size_t host = index_of[network[node.ports.front()].node.index];
    plan.cables[host] = {host, index_of[first.index]};
    if (plan.cables[host].b < hosts)
      return wrong("the host " + node.name + " is not on a switch: use --flat, which puts all hosts on one");
  }
  for (const auto& link : network.links) {
    const std::size_t a = index_of[network[link.a].node.index], b = index_of[network[link.b].node.index];
    if (a >= hosts && b >= hosts) plan.cables.push_back({a, b});
  }
  return std::nullopt;
}

Ended read_hosts(const std::string& file, bool flat, hosts::NetworkPlan& plan) {
  fabric::Complaints complaints;
  const auto network = fabric::load_network(file, complaints);
  if (!network) {
    std::fputs(complaints.text().c_str(), stderr);
    return invalid_network_file;
  }
  std::vector<std::string> names;
  for (const auto& node : network->nodes)
    if (node.kind == fabric::NodeKind::host) names.push_back(node.name);
  plan.hosts = hosts::hosts_by_order(names);
  if (!flat && network->nodes.size() > names.size() + 1)
    if (const Ended ended = add_switches(*network, plan)) return ended;
  // Of a frame, Ethernet's header with a VLAN tag and checksum is not the interface's.
  constexpr unsigned frame_overhead = 22, fewest = 1280, most = 65535;
  plan.mtu_bytes = std::clamp(network->classes.mtu_bytes - frame_overhead, fewest, most);
  plan.title = network->name.empty() ? file : network->name + " (" + file + ")";
  std::ranges::replace(plan.title, '\n', ' ');
  return std::nullopt;
}

// Empties the files to which the programs append.
Ended begin_captures(const std::string& directory, hosts::NetworkPlan& plan) {
  if (const std::string error = make_directory(directory); !error.empty()) return wrong("--pcap: " + error);
  for (const auto& host : plan.hosts) {
    const std::string file = directory + "/" + host.name + ".pcapng";
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return wrong("cannot write " + file + ": " + std::strerror(errno));
    ::close(fd);
  }
  plan.variables.emplace_back("WEIR_TRACE_PCAP", fs::absolute(directory).string() + "/{host}.pcapng");
  return std::nullopt;
}

Ended read_faults(const UpCommand& command, hosts::NetworkPlan& plan) {
  if (!command.faults_file.empty()) {
    const auto text = read_whole_file(command.faults_file);
    if (!text) return wrong("--faults: " + text.error());
    if (const auto read = faults::read_plan(*text); !read)
      return wrong(command.faults_file + ": " + faults::text_of(read.error()), fabric_misused);
    plan.variables.emplace_back("WEIR_FAULTS", fs::absolute(command.faults_file));
  }
  if (command.faults.empty()) return std::nullopt;
  if (const auto read = faults::read_plan(command.faults); !read)
    return wrong("--fault: " + read.error().what, fabric_misused);
  plan.variables.emplace_back("WEIR_FAULT", command.faults);
  return std::nullopt;
}

// "net" of "some/net.toml", with what cannot be in a name replaced.
std::string name_after(const std::string& file) {
  std::string name = fs::path(file).stem();
  for (char& letter : name)
    if (!hosts::is_name(std::string("a") + letter)) letter = '-';
  name = name.substr(0, 63);
  return hosts::is_name(name) ? name : "net";
}

int show(const std::string& name, const hosts::NetworkPlan& plan) {
  std::string text = fmt::format("{}: {}\n", name, plan.title);
  constexpr std::size_t shown = 8;
  std::size_t width = 0;
  for (const auto& host : plan.hosts) width = std::max(width, host.name.size());
  for (std::size_t index = 0; index < std::min(shown, plan.hosts.size()); ++index)
    text +=
        fmt::format("  {:<{}}  {}\n", plan.hosts[index].name, width, hosts::dotted(plan.hosts[index].ipv4));
  if (plan.hosts.size() > shown)
    text += fmt::format("  and {} more: weir fabric list {}\n", plan.hosts.size() - shown, name);
  if (plan.is_routed())
    text += fmt::format("  {} switches, {} cables between them\n", plan.switches.size(),
                        plan.cables.size() - plan.hosts.size());
  const std::string& first = plan.hosts.front().name;
  text += fmt::format(
      "Run a program in one:  weir fabric run --host {} -- ibv_devinfo\nEnd all of it:         weir fabric "
      "down {}\n",
      first, name);
  return print_out("fabric up", text, 0, fabric_failed);
}

}  // namespace

int fabric_up(std::span<const std::string> arguments) {
  UpCommand command;
  const FabricOption options[] = {{.name = "--name", .value = &command.name},
                                  {.name = "--hosts", .value = &command.hosts},
                                  {.name = "--mtu", .value = &command.mtu},
                                  {.name = "--pcap", .value = &command.captures},
                                  {.name = "--faults", .value = &command.faults_file},
                                  {.name = "--fault", .value = &command.faults, .between = ';'},
                                  {.name = "--flat", .flag = &command.flat},
                                  {.name = "--json", .flag = &command.json}};
  const auto words = read_fabric_words("up", arguments, options);
  if (!words) return words.error();
  if (words->size() > 1 || words->empty() == command.hosts.empty())
    return wrong("it wants one network file, or --hosts N; see weir fabric --help", fabric_misused);

  hosts::NetworkPlan plan;
  if (const Ended ended =
          words->empty() ? count_hosts(command, plan) : read_hosts(words->front(), command.flat, plan))
    return *ended;
  if (!command.mtu.empty()) {
    const auto mtu = read_count(command.mtu);
    if (!mtu) return wrong("--mtu wants a number of bytes, not '" + command.mtu + "'", fabric_misused);
    plan.mtu_bytes = *mtu;
  }
  const std::string name = !command.name.empty() ? command.name
                           : words->empty()      ? "net"
                                                 : name_after(words->front());
  if (const Ended ended = read_faults(command, plan)) return *ended;
  const auto folder = name.find('/') == std::string::npos
                          ? hosts::folder_of(name)
                          : hosts::failure(hosts::Cause::invalid_plan, "a network's name has no '/'");
  if (!folder) return wrong(folder.error().what, fabric_misused);
  if (const auto checked = hosts::check(plan); !checked) return wrong(checked.error().what, fabric_misused);
  if (hosts::list_hosts(*folder))
    return wrong("there is a network " + name + " already; end it (weir fabric down " + name +
                 "), or give this one another --name");
  if (!command.captures.empty())
    if (const Ended ended = begin_captures(command.captures, plan)) return *ended;
  const auto started = hosts::start_network(plan, *folder, hosts::Lifetime::until_ended);
  if (!started) return wrong(started.error().what);
  if (!command.json) return show(name, plan);
  const std::string listed[] = {"--json", name};
  return fabric_list(listed);
}

}  // namespace weir::command
