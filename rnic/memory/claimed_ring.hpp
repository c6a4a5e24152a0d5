// A ring of shared slots with many writers: each writer claims the next open slot by compare-exchange, fills
// it, and marks it complete.
//
// The owner opens a slot for one sequence number, the count of slots before it. A claim names its process, so
// that the slot of a process killed before completing it can be found. Slots are polled in the order of their
// claims: polling stops at a claimed, incomplete slot until it completes or its process is known to be dead.
#pragma once

#include <atomic>
#include <cstdint>

#include "rnic/types.hpp"

namespace weir::rnic {

enum class SlotState : std::uint32_t { empty, claimed, complete };

// sequence << 32 | claimer's slot << 8 | state
struct SlotClaim {
  std::uint32_t sequence;
  Slot claimer;
  SlotState state;

  constexpr std::uint64_t pack() const {
    return static_cast<std::uint64_t>(sequence) << 32 | static_cast<std::uint64_t>(claimer) << 8 |
           static_cast<std::uint64_t>(state);
  }
  static constexpr SlotClaim unpack(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<Slot>(word >> 8 & 0xffff),
            static_cast<SlotState>(word & 0xff)};
  }
};

// Claims the next open slot; nullptr when none is open. T has a member `claim`.
template <class T>
T* claim_slot(std::atomic<std::uint32_t>& next, const std::atomic<std::uint32_t>& opened, T* slots,
              std::uint32_t mask, Slot claimer) {
  // A bound, in case a neighbour keeps changing the owner's words under us.
  for (std::uint64_t tries = 0; tries < 2ull * mask + 1024; ++tries) {
    std::uint32_t count = next.load(std::memory_order_acquire);
    const std::uint32_t open = opened.load(std::memory_order_acquire);
    if (count == open) return nullptr;
    if (open - count > mask + 1) {
      // Further ahead than the ring's size: we read an old `next`, or the owner's words are nonsense.
      if (next.load(std::memory_order_acquire) == count) return nullptr;
      continue;
    }
    T& slot = slots[count & mask];
    std::uint64_t word = SlotClaim{count, 0, SlotState::empty}.pack();
    const bool mine = slot.claim.compare_exchange_strong(
        word, SlotClaim{count, claimer, SlotState::claimed}.pack(), std::memory_order_acq_rel);
    next.compare_exchange_strong(count, count + 1, std::memory_order_acq_rel);
    if (mine) return &slot;
  }
  return nullptr;
}

// Called by the claimer, once everything else in the slot is written. Pairs with the poller's acquire, and
// comes before the claimer's read of the CQ's `armed`, hence seq_cst.
template <class T>
void complete_slot(T& slot) {
  SlotClaim claim = SlotClaim::unpack(slot.claim.load(std::memory_order_relaxed));
  claim.state = SlotState::complete;
  slot.claim.store(claim.pack(), std::memory_order_seq_cst);
}

// Called by the owner: opens slots [from, to).
template <class T>
void open_slots(T* slots, std::uint32_t mask, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t count = from; count != to; ++count)
    slots[count & mask].claim.store(SlotClaim{count, 0, SlotState::empty}.pack(), std::memory_order_release);
}

}  // namespace weir::rnic
