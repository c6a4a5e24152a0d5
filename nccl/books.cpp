#include "nccl/books.hpp"

#include <algorithm>
#include <atomic>

namespace weir::nccl {

std::optional<Taken> OfferBook::find(std::int32_t tag) const {
  const auto slot = static_cast<std::uint8_t>((group_ - 1) % slots);
  const OfferRow& row = rows_[slot];
  // The peer's device writes the sequence last in each offer; acquire keeps the other reads behind it.
  const auto valid = [&](const Offer& offer) {
    return std::atomic_ref(const_cast<std::uint64_t&>(offer.sequence)).load(std::memory_order_acquire) ==
           group_;
  };
  const auto once = [](const auto& word) {
    return *const_cast<const volatile std::remove_reference_t<decltype(word)>*>(&word);
  };
  if (count_ == 0) {
    if (!valid(row[0])) return std::nullopt;
    count_ = std::clamp<std::uint16_t>(once(row[0].count), 1, max_group);
  }
  for (std::uint8_t member = 0; member < count_; ++member) {
    const Offer& offer = row[member];
    if ((taken_ & 1u << member) != 0 || !valid(offer) || once(offer.tag) != tag) continue;
    return Taken{
        {slot, member}, once(offer.address), once(offer.bytes), once(offer.rkey), once(offer.posted) != 0};
  }
  return std::nullopt;
}

void OfferBook::take(const Taken& taken) {
  taken_ = static_cast<std::uint8_t>(taken_ | 1u << taken.arrival.member);
  if (taken_ != (1u << count_) - 1) return;
  ++group_;
  taken_ = 0;
  count_ = 0;
}

Group& GroupBook::open(std::span<const std::size_t> rooms) {
  Group& group = groups_[opened_ % slots];
  group = Group{};
  group.number = ++opened_;
  group.count = static_cast<std::uint8_t>(rooms.size());
  for (std::size_t i = 0; i < rooms.size(); ++i) group.room[i] = static_cast<std::uint32_t>(rooms[i]);
  group.held = true;
  return group;
}

bool GroupBook::arrived(Arrival arrival, std::uint32_t bytes) {
  Group& group = groups_[arrival.slot];
  const unsigned bit = 1u << arrival.member;
  if (arrival.member >= group.count || (group.arrived & bit) != 0 || bytes > group.room[arrival.member])
    return false;
  group.arrived = static_cast<std::uint8_t>(group.arrived | bit);
  group.bytes[arrival.member] = bytes;
  return true;
}

}  // namespace weir::nccl
