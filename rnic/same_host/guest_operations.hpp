// Guests of a process: initiators inside an operation on its memory that came through a queue pair of another
// process (XRC: the SRQ need not belong to its queue pair's process). No hazard of the host process's own
// queue pairs shows them, so its deregistrations, and the destruction of its SRQs, wait for these entries
// instead.
//
// Ordering: the initiator claims an entry and then reads the SRQ and the keys; the owner revokes those and
// then reads the entries. All of it is seq_cst, so one of them sees the other. An entry whose claimer was
// killed is freed by the owner when it hears of that process's end, or while it waits for the entry.
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
  // False: every entry is taken; then nothing of that process may be touched.
  bool inside() const { return entry_ != nullptr; }

 private:
  GuestEntry* entry_ = nullptr;
  std::uint64_t freed_ = 0;
};

// Returns once every operation that was running at the call is over, or its initiator is dead. False: one was
// still running at `give_up_ns` (its process is stopped, say).
bool wait_for_guests(SegmentHeader& own, HostPort& host, std::uint64_t give_up_ns);

// A process was killed.
void evict_guests(SegmentHeader& own, Slot dead);

}  // namespace weir::rnic
