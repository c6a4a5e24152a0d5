// What a sender knows of its peer's offers, and a receiver of its groups. Pure: no device, no clock.
//
// Groups are numbered from 1 and use slot (number - 1) % slots. A receiver fills a group's slot with its
// offers and reuses the slot when everything offered there has come. A sender takes the offers of the oldest
// group that is not used up, one for each send, by tag; the next group's turn comes when the last one is
// taken. So messages come group by group, and within a group in whatever order the sends were made.
//
// Threading: one thread; offers are the exception, their memory is the peer's to write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tensor/nccl/wire.hpp"

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

  // The first offer of this tag in the current group that nobody took. Nothing: none yet. Each word that the
  // peer writes is read once.
  std::optional<Taken> find(std::int32_t tag) const;
  // Marks it as used. Of the offer that find() gave last.
  void take(const Taken& taken);
  std::uint64_t groups_used_up() const { return group_ - 1; }

 private:
  std::span<const OfferRow, slots> rows_;
  std::uint64_t group_ = 1;
  std::uint8_t taken_ = 0;           // a bit for each member
  mutable std::uint16_t count_ = 0;  // of the current group; 0: not seen yet
};

// A receiver's group in its slot.
struct Group {
  std::uint64_t number = 0;
  std::uint8_t count = 0;
  std::uint8_t arrived = 0;                     // a bit for each member
  bool held = false;                            // by the caller, who has not seen it done yet
  bool optional = false;                        // the caller does not wait for it
  std::array<std::uint32_t, max_group> room{};  // what was offered
  std::array<std::uint32_t, max_group> bytes{};

  bool complete() const { return arrived == (1u << count) - 1; }
  bool free() const { return !held && complete(); }
};

class GroupBook {
 public:
  // The next group's slot; nothing: still in use.
  std::optional<std::uint8_t> next() const {
    const auto slot = static_cast<std::uint8_t>(opened_ % slots);
    return groups_[slot].free() ? std::optional(slot) : std::nullopt;
  }
  // Of the slot that next() gave.
  Group& open(std::span<const std::size_t> rooms);
  // What came, as the device says. False: the peer broke the protocol.
  bool arrived(Arrival arrival, std::uint32_t bytes);
  Group& at(std::size_t slot) { return groups_[slot]; }
  const Group& at(std::size_t slot) const { return groups_[slot]; }

 private:
  std::array<Group, slots> groups_{};
  std::uint64_t opened_ = 0;
};

}  // namespace weir::nccl
