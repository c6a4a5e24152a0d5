#include "fabric/topology/port_names.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

namespace weir::fabric {
namespace {

constexpr std::string_view prefix = "Ethernet";

struct Slot {  // a port of the front
  std::uint32_t number = 0, lanes = 0, split = 1;
  std::uint64_t speed_bps = 0;
  bool taken = false;

  // How many ports of this speed it can be split into, at most `wanted`.
  std::uint32_t parts(std::uint64_t bps, std::uint32_t wanted) const {
    std::uint32_t parts = 1;
    while (2 * parts <= std::min(wanted, split) && speed_bps / (2 * parts) >= bps) parts *= 2;
    return parts;
  }
};

std::vector<Slot> slots_of(const SwitchModel& model) {
  std::vector<Slot> slots;
  for (const auto& range : model.ports)
    for (std::uint32_t i = 0; i < range.count; ++i)
      slots.push_back({range.first + i * range.step, range.lanes, range.split, range.speed_bps});
  // The slowest that is fast enough is the first that fits.
  std::ranges::stable_sort(slots, [](const Slot& a, const Slot& b) {
    return std::pair(a.speed_bps, a.number) < std::pair(b.speed_bps, b.number);
  });
  return slots;
}

class SwitchPorts {
 public:
  SwitchPorts(Network& network, Node& node) : network_(network), slots_(slots_of(network.model_of(node))) {
    for (const auto id : node.ports)
      if (network.ports[id.index].name.empty())
        unnamed_[network.speed_bps(id)].push_back(id);
      else
        take_named(id);
  }

  void name_all() {
    // Whole ports where there are enough of them; else as many parts as there can be of each.
    const auto free = slots_;
    if (fill(1) || (slots_ = free, fill(most_parts))) return;
    std::uint32_t number = 0;
    for (const auto& slot : slots_) number = std::max(number, slot.number + slot.lanes);
    for (const auto& [bps, ids] : unnamed_)
      for (const auto id : ids) {
        auto& port = network_.ports[id.index];
        if (!port.name.empty()) continue;
        set(id, number, 0);
        port.on_front = false;
        number += 4;
      }
  }

 private:
  static constexpr std::uint32_t most_parts = 64;

  // One that the file names: whole, or a part of the port whose lanes it is among.
  void take_named(PortId id) {
    auto& port = network_.ports[id.index];
    std::uint32_t number = 0;
    const auto digits = std::string_view(port.name).substr(std::min(port.name.size(), prefix.size()));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    port.on_front = false;
    if (!port.name.starts_with(prefix) || error != std::errc{} || end != digits.data() + digits.size())
      return;
    for (auto& slot : slots_) {
      if (number < slot.number || number >= slot.number + slot.lanes) continue;
      const auto parts = number == slot.number ? 1 : slot.parts(network_.speed_bps(id), most_parts);
      port.lanes = slot.lanes / parts;
      port.on_front =
          (number - slot.number) % port.lanes == 0 && network_.speed_bps(id) <= slot.speed_bps / parts;
      slot.taken = true;
      return;
    }
  }

  void set(PortId id, std::uint32_t number, std::uint32_t lanes) {
    auto& port = network_.ports[id.index];
    port.name = std::string(prefix) + std::to_string(number);
    port.lanes = lanes;
    port.on_front = true;
  }

  // The fastest links first: fewer ports fit them. False: some got no port.
  bool fill(std::uint32_t least_parts) {
    bool all = true;
    for (const auto& [bps, ids] : unnamed_) {
      std::uint32_t parts = least_parts;
      while (parts < most_parts && room(bps, parts) < ids.size()) parts *= 2;
      auto next = ids.begin();
      for (auto& slot : slots_) {
        if (next == ids.end()) break;
        if (slot.taken || slot.speed_bps < bps) continue;
        const auto pieces = slot.parts(bps, parts);
        for (std::uint32_t i = 0; i < pieces && next != ids.end(); ++i)
          set(*next++, slot.number + i * (slot.lanes / pieces), slot.lanes / pieces);
        slot.taken = true;
      }
      all = all && next == ids.end();
      for (; next != ids.end(); ++next) network_.ports[next->index].name.clear();
    }
    return all;
  }

  std::size_t room(std::uint64_t bps, std::uint32_t parts) const {
    std::size_t room = 0;
    for (const auto& slot : slots_)
      if (!slot.taken && slot.speed_bps >= bps) room += slot.parts(bps, parts);
    return room;
  }

  Network& network_;
  std::vector<Slot> slots_;
  std::map<std::uint64_t, std::vector<PortId>, std::greater<>> unnamed_;  // by speed
};

}  // namespace

void name_ports(Network& network) {
  for (auto& node : network.nodes)
    if (node.kind == NodeKind::switch_ && !network.model_of(node).ports.empty())
      SwitchPorts(network, node).name_all();
}

}  // namespace weir::fabric
