// `weir fabric list` and `weir fabric ps`.
#include <fmt/core.h>

#include <algorithm>

#include "cli/json_text.hpp"
#include "cli/weir/command.hpp"
#include "cli/weir/fabric/fabric_command.hpp"
#include "cli/weir/launch/in_host.hpp"
#include "twin/hosts/folder.hpp"
#include "twin/hosts/network_plan.hpp"
#include "twin/hosts/programs.hpp"
#include "twin/hosts/running_network.hpp"

namespace weir::command {
namespace {

struct ShownNetwork {
  std::string name;
  hosts::Listing listing;
  std::vector<hosts::HostProgram> programs;

  std::size_t programs_in(std::size_t host) const {
    return static_cast<std::size_t>(std::ranges::count(programs, host, &hosts::HostProgram::host));
  }
};

std::expected<ShownNetwork, std::string> look_at(const std::string& name) {
  const auto folder = find_fabric(name);
  if (!folder) return std::unexpected(folder.error());
  auto listing = hosts::list_hosts(*folder);
  if (!listing) return std::unexpected(listing.error().what);
  auto cables = hosts::list_cables(*folder);
  if (!cables) return std::unexpected(cables.error().what);
  listing->cables = *std::move(cables);
  auto programs = hosts::programs_in(*listing);
  return ShownNetwork{folder->substr(folder->rfind('/') + 1), *std::move(listing), std::move(programs)};
}

void add_traffic(JsonText& json, std::string_view key, const hosts::Traffic& traffic) {
  json.key(key)
      .begin_object()
      .key("packets")
      .number(traffic.packets)
      .key("bytes")
      .number(traffic.bytes)
      .end();
}

void add_cables(JsonText& json, const std::vector<hosts::ListedCable>& cables) {
  json.key("cables").begin_array();
  for (const auto& cable : cables) {
    json.line(4).begin_object().key("a").text(cable.a).key("b").text(cable.b);
    json.key("link").text(cable.plugged_in ? "up" : "down");
    add_traffic(json, "sent", cable.sent);
    add_traffic(json, "received", cable.received);
    json.end();
  }
  json.end();
}

void add_network(JsonText& json, const ShownNetwork& network) {
  json.line(2).begin_object().key("name").text(network.name).key("network").text(network.listing.title);
  json.key("hosts").begin_array();
  for (std::size_t index = 0; index < network.listing.hosts.size(); ++index) {
    const auto& host = network.listing.hosts[index];
    json.line(4).begin_object().key("name").text(host.name).key("address").text(hosts::dotted(host.ipv4));
    json.key("link").text(host.plugged_in ? "up" : "down");
    add_traffic(json, "sent", host.sent);
    add_traffic(json, "received", host.received);
    json.key("programs").begin_array();
    for (const auto& program : network.programs)
      if (program.host == index)
        json.line(6).begin_object().key("pid").number(program.pid).key("command").text(program.command).end();
    json.end().end();
  }
  json.end();
  if (!network.listing.cables.empty()) add_cables(json, network.listing.cables);
  json.end();
}

std::string as_json(const std::vector<ShownNetwork>& networks) {
  JsonText json;
  json.begin_object().key("fabrics").begin_array();
  for (const ShownNetwork& network : networks) add_network(json, network);
  json.end().line(0);
  return json.end().take() + "\n";
}

std::string all_networks(const std::vector<ShownNetwork>& networks) {
  if (networks.empty()) return "no fabric is up; begin with: weir fabric up --hosts 2\n";
  std::vector<std::vector<std::string>> rows{{"FABRIC", "HOSTS", "PROGRAMS", "NETWORK"}};
  for (const ShownNetwork& network : networks)
    rows.push_back({network.name, std::to_string(network.listing.hosts.size()),
                    std::to_string(network.programs.size()), network.listing.title});
  return table_of(rows);
}

std::string hosts_of(const ShownNetwork& network) {
  std::vector<std::vector<std::string>> rows{{"HOST", "ADDRESS", "LINK", "PROGRAMS"}};
  for (std::size_t index = 0; index < network.listing.hosts.size(); ++index) {
    const auto& host = network.listing.hosts[index];
    rows.push_back({host.name, hosts::dotted(host.ipv4), host.plugged_in ? "up" : "down",
                    std::to_string(network.programs_in(index))});
  }
  std::string text = table_of(rows);
  if (network.listing.cables.empty()) return text;
  rows.assign({{"CABLE", "", "LINK", "SENT", "RECEIVED"}});
  for (const auto& cable : network.listing.cables)
    rows.push_back({cable.a, cable.b, cable.plugged_in ? "up" : "down", std::to_string(cable.sent.packets),
                    std::to_string(cable.received.packets)});
  return text + "\n" + table_of(rows);
}

std::string programs_of(const ShownNetwork& network) {
  std::vector<std::vector<std::string>> rows{{"HOST", "PID", "COMMAND"}};
  for (const auto& program : network.programs)
    rows.push_back({network.listing.hosts[program.host].name, std::to_string(program.pid), program.command});
  return table_of(rows);
}

}  // namespace

std::string table_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t column = 0; column + 1 < row.size(); ++column)
      text += fmt::format("{:<{}}  ", row[column], widths[column]);
    text += row.back() + "\n";
  }
  return text;
}

int fabric_list(std::span<const std::string> arguments) {
  bool json = false;
  std::string name;
  const FabricOption options[] = {{.name = "--json", .flag = &json}, {.name = "--fabric", .value = &name}};
  const auto words = read_fabric_words("list", arguments, options);
  if (!words) return words.error();
  if (words->size() > 1) return complain("fabric list", "it wants one name at most; see weir fabric --help");
  if (!words->empty()) name = words->front();
  std::vector<ShownNetwork> networks;
  for (const std::string& each : name.empty() ? hosts::running_networks() : std::vector{name}) {
    auto network = look_at(each);
    if (!network && !name.empty()) return complain("fabric list", network.error(), fabric_failed);
    if (network) networks.push_back(*std::move(network));  // else it has just ended
  }
  const std::string text = json           ? as_json(networks)
                           : name.empty() ? all_networks(networks)
                                          : hosts_of(networks.front());
  return print_out("fabric list", text, 0, fabric_failed);
}

int fabric_ps(std::span<const std::string> arguments) {
  bool json = false;
  std::string name;
  const FabricOption options[] = {{.name = "--json", .flag = &json}, {.name = "--fabric", .value = &name}};
  const auto words = read_fabric_words("ps", arguments, options);
  if (!words) return words.error();
  if (words->size() > 1) return complain("fabric ps", "it wants one name at most; see weir fabric --help");
  const auto network = look_at(words->empty() ? name : words->front());
  if (!network) return complain("fabric ps", network.error(), fabric_failed);
  return print_out("fabric ps", json ? as_json({*network}) : programs_of(*network), 0, fabric_failed);
}

}  // namespace weir::command
