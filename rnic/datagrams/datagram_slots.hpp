// Arrivals for a queue pair that any process may send to: the owner's side of its ring of datagram slots.
//
// One slot is opened for each posted receive; with a shared receive queue all slots are open from the
// beginning, and each is reopened once polled. Senders claim and fill them (datagram.cpp, raw_packet.cpp).
// Threading: open() under the receive queue's lock, the rest under the CQ's.
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
  // With a shared receive queue: opens all slots, unless they are open already.
  void open_all();
  std::size_t poll(std::span<WorkCompletion>);
  std::size_t unpolled() const;
  void append_completed(std::vector<std::uint32_t>&) const;
  // A sender was killed: the slots that it had claimed and not completed are delivered as empty datagrams, so
  // that their receives are not lost and the ring moves on.
  void void_claims_of(Slot dead);

 private:
  void reopen(std::uint32_t polled);

  const QpCommon& qp_;
  const ReceiveRings& rings_;
  ReceiveQueue& queue_;  // its polled count is also that of slots
};

}  // namespace weir::rnic
