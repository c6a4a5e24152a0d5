#include "fabric/topology/port_names.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <span>

namespace weir::fabric {
namespace {

constexpr std::string_view prefix = "Ethernet";

struct Slot {  // a front port
  std::uint32_t number = 0, lanes = 0;
  std::span<const Breakout> modes;
  bool taken = false;

  std::uint64_t fastest() const { return std::ranges::max(modes, {}, &Breakout::speed_bps).speed_bps; }
  // Into how many ports of this speed it can be split: at most `wanted`, or the smallest possible number;
  // 0: no mode is fast enough.
  std::uint32_t parts(std::uint64_t bps, std::uint32_t wanted) const {
    std::uint32_t parts = 0;
    for (const auto& mode : modes)
      if (mode.speed_bps >= bps && (parts == 0 || mode.parts <= wanted)) parts = mode.parts;
    return parts;
  }
};

std::vector<Slot> slots_of(const SwitchModel& model) {
  std::vector<Slot> slots;
  for (const auto& range : model.ports)
    for (std::uint32_t i = 0; i < range.count; ++i)
      slots.push_back({range.first + i * range.step, range.lanes, range.modes});
  // Sorted by speed, so the first port that fits is the slowest that is fast enough.
  std::ranges::stable_sort(slots, [](const Slot& a, const Slot& b) {
    return std::pair(a.fastest(), a.number) < std::pair(b.fastest(), b.number);
  });
  return slots;
}

class SwitchPorts {
 public:
  SwitchPorts(Network& network, Node& node) : network_(network), slots_(slots_of(network.model_of(node))) {
    std::map<std::uint32_t, PortId> named;  // by number
    for (const auto id : node.ports) {
      auto& port = network_.ports[id.index];
      if (port.name.empty()) {
        unnamed_[network.speed_bps(id)].push_back(id);
        continue;
      }
      port.on_front = false;
      if (const auto number = number_of(port.name)) named.emplace(*number, id);
    }
    for (auto& slot : slots_) take_named(slot, named);
  }

  void name_all() {
    // Whole ports if there are enough; otherwise split each into as many parts as possible.
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

  static std::optional<std::uint32_t> number_of(std::string_view name) {
    std::uint32_t number = 0;
    const auto digits = name.substr(std::min(name.size(), prefix.size()));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (!name.starts_with(prefix) || error != std::errc{} || end != digits.data() + digits.size())
      return std::nullopt;
    return number;
  }

  // A port that the file names is a whole front port or a part of the one that contains its lanes. Chooses
  // the smallest split that is consistent with all of these names.
  void take_named(Slot& slot, const std::map<std::uint32_t, PortId>& named) {
    const auto begin = named.lower_bound(slot.number), end = named.lower_bound(slot.number + slot.lanes);
    if (begin == end) return;
    slot.taken = true;
    const auto fits = [&](const Breakout& mode) {
      return std::all_of(begin, end, [&](const auto& one) {
        return network_.speed_bps(one.second) <= mode.speed_bps &&
               (one.first - slot.number) % (slot.lanes / mode.parts) == 0;
      });
    };
    const auto mode = std::ranges::find_if(slot.modes, fits);
    if (mode == slot.modes.end()) return;
    for (auto one = begin; one != end; ++one) {
      auto& port = network_.ports[one->second.index];
      port.lanes = slot.lanes / mode->parts;
      port.on_front = true;
    }
  }

  void set(PortId id, std::uint32_t number, std::uint32_t lanes) {
    auto& port = network_.ports[id.index];
    port.name = std::string(prefix) + std::to_string(number);
    port.lanes = lanes;
    port.on_front = true;
  }

  // The fastest links first, because fewer ports suit them. False: some got no port.
  bool fill(std::uint32_t least_parts) {
    bool all = true;
    for (const auto& [bps, ids] : unnamed_) {
      std::uint32_t parts = least_parts;
      while (parts < most_parts && room(bps, parts) < ids.size()) parts *= 2;
      auto next = ids.begin();
      for (auto& slot : slots_) {
        if (next == ids.end()) break;
        if (slot.taken || slot.fastest() < bps) continue;
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
      if (!slot.taken) room += slot.parts(bps, parts);
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
