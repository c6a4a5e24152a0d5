// The initiator's side of handed-over copies (docs/decisions/0006): moving bytes to and from a neighbour's
// memory through the lanes of its segment, which its mover serves.
//
// Synchronous: when a call returns, none of its copies is outstanding. It waits a bounded time for a mover
// that does not answer, and a shorter time from then on. Once the mover reports that it runs, the wait is
// longer than before: the process is alive, and the machine so busy that it got no processor in that time.
//
// Threading: any number of threads; each uses a lane of its own.
#pragma once

#include <atomic>
#include <chrono>

#include "rnic/peer.hpp"

namespace weir::verbs {

class Handover {
 public:
  using Transfer = rnic::Peer::Transfer;
  // `longest_copy`: how long one lane's copy may run before it is left to itself; its process was stopped in
  // the middle then.
  Handover(rnic::Peer& target, rnic::Slot own,
           std::chrono::milliseconds longest_copy = std::chrono::seconds{2})
      : target_(target), own_(own), longest_copy_(longest_copy) {}

  // `patience`: how long to wait for a mover that does not begin.
  Transfer write(std::span<const iovec> local, const rnic::Peer::Remote& remote,
                 std::chrono::nanoseconds patience);
  Transfer read(std::span<const iovec> local, const rnic::Peer::Remote& remote,
                std::chrono::nanoseconds patience);

  // The target's mover reports that it runs, and was too late for our request.
  void mover_runs();

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  Transfer transfer(rnic::LaneCopy copy, std::span<const iovec> local, const rnic::Peer::Remote& remote,
                    std::chrono::nanoseconds patience);
  std::chrono::nanoseconds patience_now(std::chrono::nanoseconds wanted) const;
  Transfer nobody_came();
  static Transfer end(rnic::CopyLane& lane, Transfer outcome);
  rnic::CopyLane* claim(Deadline give_up);
  void post(rnic::CopyLane& lane);
  Transfer await(rnic::CopyLane& lane, std::chrono::nanoseconds patience);
  bool change(rnic::CopyLane& lane, rnic::LaneState from, rnic::LaneState to) const;
  rnic::LaneState state_of(const rnic::CopyLane& lane) const;

  rnic::Peer& target_;
  const rnic::Slot own_;
  const std::chrono::milliseconds longest_copy_;
  std::atomic<bool> late_ = false;
  std::atomic<std::uint32_t> doublings_ = 0;  // of the patience, since it was last in time
};

}  // namespace weir::verbs
