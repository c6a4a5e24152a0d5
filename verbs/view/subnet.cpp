#include "verbs/view/subnet.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace weir::verbs {
namespace {

constexpr std::uint16_t first_switch_lid = 0xb000;  // up to 0xbfff: unicast, and above any host's here
constexpr std::size_t max_ports = 254;

std::string_view take(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view word = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return word;
}

template <class Number>
void put(std::uint8_t* at, Number number) {
  for (std::size_t byte = 0; byte < sizeof number; ++byte)
    at[byte] = static_cast<std::uint8_t>(number >> 8 * (sizeof number - 1 - byte));
}
std::uint16_t get16(const std::uint8_t* at) { return static_cast<std::uint16_t>(at[0] << 8 | at[1]); }
std::uint32_t get32(const std::uint8_t* at) {
  return static_cast<std::uint32_t>(get16(at)) << 16 | get16(at + 2);
}

// Where fields are (IBA 14.2.1).
constexpr std::size_t class_at = 1, method_at = 3, status_at = 4, hop_count_at = 7, attribute_at = 16,
                      modifier_at = 20, start_lid_at = 32, data_at = 64, initial_path_at = 128,
                      return_path_at = 192;
constexpr std::uint8_t directed_class = 0x81, get_method = 1, response_bit = 0x80;
constexpr std::uint16_t permissive_lid = 0xffff, direction_bit = 0x8000, unsupported_method = 2 << 2,
                        unsupported_attribute = 3 << 2, invalid_value = 7 << 2;
constexpr std::uint8_t max_hops = 63;

struct Question {
  const Subnet& subnet;
  const SubnetNode& node;
  std::uint8_t arrived_by;  // port of that node
  std::uint32_t modifier;
};
using Data = std::uint8_t*;  // 64 bytes, zero

std::uint16_t node_description(const Question& question, Data data) {
  const std::string text = question.node.name + (question.node.is_switch ? "" : " weir0");
  std::memcpy(data, text.data(), std::min<std::size_t>(text.size(), 64));
  return 0;
}

std::uint16_t node_info(const Question& question, Data data) {
  data[0] = data[1] = 1;  // versions
  data[2] = question.node.is_switch ? 2 : 1;
  data[3] = static_cast<std::uint8_t>(question.node.ports.size());
  for (const std::size_t guid_at : {4, 12, 20})
    put(data + guid_at, question.node.guid);  // system, node, port
  put(data + 28, std::uint16_t{1});           // size of the P_Key table
  data[36] = question.arrived_by;
  return 0;
}

std::uint16_t switch_info(const Question& question, Data data) {
  if (!question.node.is_switch) return unsupported_attribute;
  put(data, std::uint16_t{0xbfff});                   // LinearFDBCap
  put(data + 6, static_cast<std::uint16_t>(0xbfff));  // LinearFDBTop
  return 0;
}

std::uint16_t port_info(const Question& question, Data data) {
  const std::uint32_t number =
      question.modifier != 0 || question.node.is_switch ? question.modifier : question.arrived_by;
  if (number > question.node.ports.size()) return invalid_value;
  const bool up = number == 0 || question.node.ports[number - 1].up;
  put(data + 8, std::uint64_t{0xfe80000000000000});  // GID prefix
  if (number == 0 || !question.node.is_switch) put(data + 16, question.node.lid);
  data[28] = question.arrived_by;
  data[29] = data[30] = 3;                                      // LinkWidthEnabled, supported: 1x or 4x
  data[31] = up ? 2 : 0;                                        // LinkWidthActive: 4x
  data[32] = static_cast<std::uint8_t>(0x70 | (up ? 4 : 1));    // LinkSpeedSupported; PortState Active, Down
  data[33] = static_cast<std::uint8_t>((up ? 5 : 2) << 4 | 2);  // LinkUp, Polling; default Polling
  data[35] = 0x47;                                              // LinkSpeedActive, enabled
  data[36] = 0x50;                                              // NeighborMTU 4096
  data[37] = 0x10;                                              // VLCap
  data[41] = 0x05;                                              // MTUCap 4096
  data[50] = 1;                                                 // GUIDCap
  if (up) data[62] = 0x20;                                      // LinkSpeedExtActive: EDR
  data[62] = static_cast<std::uint8_t>(data[62] | 3);           // LinkSpeedExtSupported
  data[63] = 3;                                                 // LinkSpeedExtEnabled
  put(data + 20, std::uint32_t{0x4000});                        // CapabilityMask: IsExtendedSpeedsSupported
  return 0;
}

std::uint16_t guid_info(const Question& question, Data data) {
  if (question.modifier == 0) put(data, question.node.guid);
  return 0;
}

std::uint16_t pkey_table(const Question&, Data data) {
  put(data, std::uint16_t{0xffff});
  return 0;
}

// A route's first port of each switch, over up cables, by breadth first: what a subnet manager would set.
std::uint16_t forwarding_table(const Question& question, Data data) {
  if (!question.node.is_switch) return unsupported_attribute;
  const auto& nodes = question.subnet.nodes;
  const auto own = static_cast<std::size_t>(&question.node - nodes.data());
  std::vector<std::uint8_t> first(nodes.size(), 0xff);
  std::vector<std::size_t> queue{own};
  first[own] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next)
    for (std::size_t port = 0; port < nodes[queue[next]].ports.size(); ++port) {
      const SubnetPort& to = nodes[queue[next]].ports[port];
      if (!to.up || first[to.peer] != 0xff || (queue[next] != own && !nodes[queue[next]].is_switch)) continue;
      first[to.peer] = queue[next] == own ? static_cast<std::uint8_t>(port + 1) : first[queue[next]];
      queue.push_back(to.peer);
    }
  std::fill_n(data, 64, std::uint8_t{0xff});
  for (std::size_t node = 0; node < nodes.size(); ++node)
    if (nodes[node].lid / 64u == question.modifier) data[nodes[node].lid % 64u] = first[node];
  return 0;
}

constexpr struct {
  std::uint16_t attribute;
  std::uint16_t (*answer)(const Question&, Data);
} attributes[] = {{0x10, node_description}, {0x11, node_info},  {0x12, switch_info},     {0x14, guid_info},
                  {0x15, port_info},        {0x16, pkey_table}, {0x19, forwarding_table}};

struct Place {
  std::size_t node;
  std::uint8_t arrived_by;
};

// Where a directed packet gets to. Writes the way back into it.
std::optional<Place> walk(const Subnet& subnet, Mad& mad, std::size_t from) {
  Place place{from, static_cast<std::uint8_t>(subnet.nodes[from].is_switch ? 0 : 1)};
  const std::uint8_t hops = mad[hop_count_at];
  if (hops > max_hops) return std::nullopt;
  for (std::size_t hop = 1; hop <= hops; ++hop) {
    const SubnetNode& node = subnet.nodes[place.node];
    const std::uint8_t port = mad[initial_path_at + hop];
    if (port == 0 || port > node.ports.size() || !node.ports[port - 1].up) return std::nullopt;
    if (hop > 1 && !node.is_switch) return std::nullopt;  // adapters pass nothing on
    place = {node.ports[port - 1].peer, node.ports[port - 1].peer_port};
    mad[return_path_at + hop] = place.arrived_by;
  }
  return place;
}

std::optional<std::size_t> node_with(const Subnet& subnet, std::uint16_t lid) {
  const auto found = std::ranges::find(subnet.nodes, lid, &SubnetNode::lid);
  if (found == subnet.nodes.end()) return std::nullopt;
  return static_cast<std::size_t>(found - subnet.nodes.begin());
}

void add_cable(Subnet& subnet, std::size_t a, std::size_t b, bool up) {
  auto &one = subnet.nodes[a].ports, &other = subnet.nodes[b].ports;
  if (a == b || one.size() >= max_ports || other.size() >= max_ports) return;
  one.push_back({b, static_cast<std::uint8_t>(other.size() + 1), up});
  other.push_back({a, static_cast<std::uint8_t>(one.size()), up});
}

SubnetNode host_node(std::string_view name, std::uint16_t lid, GuidOf guid_of) {
  return {std::string(name), guid_of(name), lid, false, {}};
}

}  // namespace

std::optional<Subnet> read_subnet(std::string_view topology, std::string_view self, GuidOf guid_of) {
  Subnet subnet;
  std::map<std::string_view, std::size_t> index;
  const auto add = [&](SubnetNode node, std::string_view name) {
    if (index.emplace(name, subnet.nodes.size()).second) subnet.nodes.push_back(std::move(node));
  };
  std::uint16_t switches = 0;
  while (!topology.empty()) {
    std::string_view line = take(topology, '\n');
    const std::string_view kind = take(line, ' '), name = take(line, ' ');
    if (kind == "switch" && switches < 0x0fff) {
      SubnetNode node = host_node(name, static_cast<std::uint16_t>(first_switch_lid + switches++), guid_of);
      node.guid |= std::uint64_t{0xff} << 24;  // a host may have the same name
      node.is_switch = true;
      add(std::move(node), name);
    } else if (kind == "host") {
      in_addr address{};
      if (::inet_pton(AF_INET, std::string(line).c_str(), &address) != 1) continue;
      add(host_node(name, static_cast<std::uint16_t>(ntohl(address.s_addr)), guid_of), name);
    } else if (kind == "cable") {
      const auto one = index.find(name), other = index.find(take(line, ' '));
      if (one != index.end() && other != index.end())
        add_cable(subnet, one->second, other->second, line == "up");
    }
  }
  const auto own = index.find(self);
  if (own == index.end()) return std::nullopt;
  subnet.self = own->second;
  return subnet;
}

Subnet lonely_subnet(std::string_view self, std::uint16_t lid, GuidOf guid_of) {
  Subnet subnet{{host_node(self, lid, guid_of)}, 0};
  subnet.nodes[0].ports.push_back({0, 1, false});
  return subnet;
}

std::optional<Mad> answer_smp(const Subnet& subnet, const Mad& request, std::uint16_t lid) {
  Mad answer = request;
  const bool directed = request[class_at] == directed_class;
  std::optional<std::size_t> from = subnet.self;
  if (!directed || get16(&request[start_lid_at]) != permissive_lid) from = node_with(subnet, lid);
  if (!from) return std::nullopt;
  std::optional<Place> place = Place{*from, static_cast<std::uint8_t>(subnet.nodes[*from].is_switch ? 0 : 1)};
  if (directed) place = walk(subnet, answer, *from);
  if (!place) return std::nullopt;
  answer[method_at] = get_method | response_bit;
  std::fill_n(answer.begin() + data_at, 64, std::uint8_t{0});
  std::uint16_t status = request[method_at] == get_method ? unsupported_attribute : unsupported_method;
  const auto known = std::ranges::find(attributes, get16(&request[attribute_at]),
                                       [](const auto& each) { return each.attribute; });
  if (request[method_at] == get_method && known != std::end(attributes))
    status =
        known->answer({subnet, subnet.nodes[place->node], place->arrived_by, get32(&request[modifier_at])},
                      answer.data() + data_at);
  put(&answer[status_at], static_cast<std::uint16_t>(status | (directed ? direction_bit : 0)));
  return answer;
}

}  // namespace weir::verbs
