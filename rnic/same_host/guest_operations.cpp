#include "rnic/same_host/guest_operations.hpp"

#include <sched.h>

#include <algorithm>

#include "rnic/memory/spin_lock.hpp"

namespace weir::rnic {
namespace {

void raise_to(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  std::uint32_t before = word.load(std::memory_order_seq_cst);
  while (before < value && !word.compare_exchange_weak(before, value, std::memory_order_seq_cst)) {
  }
}

std::uint32_t used(const SegmentHeader& header) {
  return std::min(header.guests_used.load(std::memory_order_seq_cst), max_guests);
}

void free_entry(GuestEntry& entry, std::uint64_t word) {
  const GuestWord freed{GuestWord::unpack(word).claims, Qpn()};
  entry.word.compare_exchange_strong(word, freed.pack(), std::memory_order_seq_cst);
}

}  // namespace

GuestOperation::GuestOperation(SegmentHeader& host, Qpn initiator, std::uint32_t& hint) {
  for (std::uint32_t tried = 0; tried < max_guests; ++tried) {
    const std::uint32_t index = (hint + tried) % max_guests;
    GuestEntry& entry = host.guests[index];
    std::uint64_t word = entry.word.load(std::memory_order_relaxed);
    const GuestWord free = GuestWord::unpack(word);
    if (free.initiator.value() != 0) continue;
    raise_to(host.guests_used, index + 1);  // before the claim: the owner looks no further than this
    const GuestWord claimed{free.claims + 1, initiator};
    if (!entry.word.compare_exchange_strong(word, claimed.pack(), std::memory_order_seq_cst)) continue;
    entry_ = &entry;
    freed_ = GuestWord{claimed.claims, Qpn()}.pack();
    hint = index;
    return;
  }
}

GuestOperation::~GuestOperation() {
  if (entry_ != nullptr) entry_->word.store(freed_, std::memory_order_release);
}

bool wait_for_guests(SegmentHeader& own, HostPort& host, std::uint64_t give_up_ns) {
  const std::uint32_t end = used(own);
  for (std::uint32_t index = 0; index < end; ++index) {
    GuestEntry& entry = own.guests[index];
    const std::uint64_t seen = entry.word.load(std::memory_order_seq_cst);
    const Qpn initiator = GuestWord::unpack(seen).initiator;
    if (initiator.value() == 0) continue;
    for (int tries = 0; entry.word.load(std::memory_order_seq_cst) == seen; ++tries) {
      if (tries < 100) {
        cpu_relax();
        continue;
      }
      // It may know us a moment before we know it, so wait before declaring it dead.
      if (!host.peer(initiator.slot(), HostPort::Wait::yes)) {
        free_entry(entry, seen);
        break;
      }
      if (host.now_ns() >= give_up_ns) return false;
      sched_yield();
    }
  }
  return true;
}

void evict_guests(SegmentHeader& own, Slot dead) {
  const std::uint32_t end = used(own);
  for (std::uint32_t index = 0; index < end; ++index) {
    const std::uint64_t word = own.guests[index].word.load(std::memory_order_seq_cst);
    const Qpn initiator = GuestWord::unpack(word).initiator;
    if (initiator.value() != 0 && initiator.slot() == dead) free_entry(own.guests[index], word);
  }
}

}  // namespace weir::rnic
