// Where the completions of an XRC shared receive queue are kept: many queue pairs, of several processes,
// deliver into one SRQ, and the SRQ's own CQ reports all of it (IBA annex A14).
//
// A ring of slots that initiators claim (claimed_ring.hpp), in the SRQ's segment. It is twice as long as the
// SRQ, so an initiator that has taken a receive always finds a slot. Threading: poll() under the CQ's lock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rnic/memory/claimed_ring.hpp"
#include "rnic/memory/segment.hpp"

namespace weir::rnic {

class CompletionQueue;
class SharedReceiveQueue;

class XrcCompletions {
 public:
  XrcCompletions(Segment&, SrqContext&, std::uint32_t wrs);
  ~XrcCompletions();
  XrcCompletions(const XrcCompletions&) = delete;
  XrcCompletions& operator=(const XrcCompletions&) = delete;

  bool valid() const { return slots_ != nullptr; }
  // An initiator stopped inside an operation may still touch the ring.
  void keep_ring() { offset_ = 0; }

  // The next completion that can be reported; nullptr if there is none. next() must be followed by take().
  const XrcCompletion* next();
  void take();
  std::size_t unpolled() const;

  // A process was killed: skips the slots that it had claimed and not completed. True if there were any.
  bool void_slots_of(Slot dead);
  void append_completed(std::vector<std::uint32_t>& numbers) const;

 private:
  Segment& segment_;
  SrqContext& ctx_;
  std::uint32_t mask_;
  std::uint64_t offset_ = 0;
  XrcCompletion* slots_ = nullptr;
  std::uint32_t polled_ = 0;
};

}  // namespace weir::rnic
