#include "kv/gateway/slot_map.hpp"

#include <algorithm>

namespace weir::kv::cluster {

Node* SlotMap::any() const {
  const auto found = std::ranges::find_if(nodes_, [](const auto& entry) { return entry.second->has_slots; });
  return found == nodes_.end() ? nullptr : found->second.get();
}

Node* SlotMap::from(std::uint16_t number) const {
  for (std::size_t i = number; i < numbered_.size(); ++i)
    if (numbered_[i] != nullptr && numbered_[i]->has_slots) return numbered_[i];
  return nullptr;
}

std::size_t SlotMap::slots_covered() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(owners_, [](std::uint16_t number) { return number != 0; }));
}

std::size_t SlotMap::owners() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [](const auto& entry) { return entry.second->has_slots; }));
}

Node* SlotMap::node(const NodeAddress& address) {
  const auto found = nodes_.find(address);
  if (found != nodes_.end()) return found->second.get();
  if (nodes_.size() >= most_nodes) return nullptr;
  auto made = std::make_unique<Node>();
  made->address = address;
  const auto free = std::find(numbered_.begin() + 1, numbered_.end(), nullptr);
  made->number = static_cast<std::uint16_t>(free - numbered_.begin());
  if (free == numbered_.end()) numbered_.push_back(nullptr);
  numbered_[made->number] = made.get();
  return nodes_.emplace(address, std::move(made)).first->second.get();
}

void SlotMap::move(std::uint16_t slot, Node& to) {
  if (owners_[slot] == to.number) return;
  to.has_slots = true;
  owners_[slot] = to.number;
  ++version_;
}

void SlotMap::take(const Topology& topology) {
  std::array<std::uint16_t, slot_count> owners{};
  for (const SlotRange& range : topology.ranges) {
    Node* const primary = node(range.primary);
    if (primary == nullptr) continue;
    for (unsigned slot = range.first; slot <= range.last; ++slot) owners[slot] = primary->number;
  }
  if (owners != owners_ || version_ == 0) {
    owners_ = owners;
    ++version_;
  }
  for (auto& [address, known] : nodes_) known->has_slots = false;
  for (const std::uint16_t owner : owners_) {
    if (owner != 0) numbered_[owner]->has_slots = true;
  }
  std::erase_if(nodes_, [this](const auto& entry) {
    const bool goes = !entry.second->has_slots && !entry.second->linked();
    if (goes) numbered_[entry.second->number] = nullptr;
    return goes;
  });
}

}  // namespace weir::kv::cluster
