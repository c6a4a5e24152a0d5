// What arrived for a queue pair to which anybody may send: the owner's side of its ring of datagram slots.
//
// A slot is opened for each receive that is posted; with a shared receive queue all are open from the
// beginning, and one is opened again once it was polled. Senders claim and fill them (datagram.cpp,
// raw_packet.cpp). Threading: open() under the receive queue's lock, the rest under the CQ's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rnic/queue_pair/receive_queue.hpp"

namespace weir::rnic {

class DatagramSlots {
 public:
  DatagramSlots(const QpCommon& qp, const ReceiveRings& rings, ReceiveQueue& queue)
      : qp_(qp), rings_(rings), queue_(queue) {}

  // Each becomes claimable under its own sequence number.
  void open(std::uint32_t from, std::uint32_t to);
  // With a shared receive queue, unless they are open already.
  void open_all();
  std::size_t poll(std::span<WorkCompletion>);
  std::size_t unpolled() const;
  void append_completed(std::vector<std::uint32_t>&) const;
  // A sender was killed: what it had claimed and not completed is delivered as an empty datagram, so that the
  // receive is not lost and the ring moves on.
  void void_claims_of(Slot dead);

 private:
  void reopen(std::uint32_t polled);

  const QpCommon& qp_;
  const ReceiveRings& rings_;
  ReceiveQueue& queue_;  // its count of what was polled is that of slots, too
};

}  // namespace weir::rnic
