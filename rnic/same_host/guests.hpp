// Guests of a process: initiators inside an operation on its memory that came by a queue pair of another
// process (XRC, whose SRQ need not be of its queue pair's process). So no hazard of its own queue pairs tells
// of them, and its deregistrations, and the destruction of its SRQs, wait for these entries instead.
//
// Ordering: the initiator claims an entry and then looks at the SRQ and at keys; the owner takes those back
// and then looks at the entries. All of it is seq_cst, so one of them sees the other. An entry whose claimer
// was killed is freed by the owner when it hears of that end, or waits for it.
#pragma once

#include <cstdint>

#include "rnic/peer.hpp"

namespace weir::rnic {

// Scope of one operation as a guest.
class GuestOperation {
 public:
  // `hint`: the entry that the caller got last time.
  GuestOperation(SegmentHeader& host, Qpn initiator, std::uint32_t& hint);
  ~GuestOperation();
  GuestOperation(const GuestOperation&) = delete;
  GuestOperation& operator=(const GuestOperation&) = delete;
  // False: every entry is taken, and nothing of that process may be touched.
  bool inside() const { return entry_ != nullptr; }

 private:
  GuestEntry* entry_ = nullptr;
  std::uint64_t freed_ = 0;
};

// Returns once every operation is over that was running when it was called, or its initiator is dead. False:
// one was still running at `give_up_ns` (its process is stopped, say).
bool wait_for_guests(SegmentHeader& own, HostPort& host, std::uint64_t give_up_ns);

// A process was killed.
void evict_guests(SegmentHeader& own, Slot dead);

}  // namespace weir::rnic
