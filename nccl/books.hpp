// A sender's record of its peer's offers, and a receiver's record of its groups. Pure: no device, no clock.
//
// Groups are numbered from 1 and use slot (number - 1) % slots. A receiver writes a group's offers into its
// slot, and reuses the slot once a message has arrived for each of them. A sender matches each send to an
// offer of the oldest group that still has one, by tag, and moves to the next group when all are taken. So
// messages arrive group by group, and within a group in the order of the sends.
//
// Threading: one thread, except that the peer's device writes the memory of the offers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nccl/wire.hpp"

namespace weir::nccl {

// An offer that a send may use.
struct Taken {
  Arrival arrival;
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t rkey;
  bool posted;
};

class OfferBook {
 public:
  // `rows` is the memory that the peer writes; it outlives the book.
  explicit OfferBook(std::span<const OfferRow, slots> rows) : rows_(rows) {}

  // The first unused offer with this tag in the current group; nothing if there is none yet. Each word that
  // the peer writes is read once.
  std::optional<Taken> find(std::int32_t tag) const;
  // Marks the offer that find() returned last as used.
  void take(const Taken& taken);
  std::uint64_t groups_used_up() const { return group_ - 1; }

 private:
  std::span<const OfferRow, slots> rows_;
  std::uint64_t group_ = 1;
  std::uint8_t taken_ = 0;           // a bit for each member
  mutable std::uint16_t count_ = 0;  // offers in the current group; 0: not known yet
};

// A receiver's group, in its slot.
struct Group {
  std::uint64_t number = 0;
  std::uint8_t count = 0;
  std::uint8_t arrived = 0;                     // a bit for each member
  bool held = false;                            // the caller has not seen its completion yet
  bool optional = false;                        // the caller does not wait for its completion
  std::array<std::uint32_t, max_group> room{};  // bytes offered
  std::array<std::uint32_t, max_group> bytes{};

  bool complete() const { return arrived == (1u << count) - 1; }
  bool free() const { return !held && complete(); }
};

class GroupBook {
 public:
  // The next group's slot; nothing while that is still in use.
  std::optional<std::uint8_t> next() const {
    const auto slot = static_cast<std::uint8_t>(opened_ % slots);
    return groups_[slot].free() ? std::optional(slot) : std::nullopt;
  }
  // Opens a group in the slot that next() returned.
  Group& open(std::span<const std::size_t> rooms);
  // Records a message that the device reports. Returns false if the peer broke the protocol.
  bool arrived(Arrival arrival, std::uint32_t bytes);
  Group& at(std::size_t slot) { return groups_[slot]; }
  const Group& at(std::size_t slot) const { return groups_[slot]; }

 private:
  std::array<Group, slots> groups_{};
  std::uint64_t opened_ = 0;
};

}  // namespace weir::nccl
