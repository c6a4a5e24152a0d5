// The first step of every delivery into a ring of datagram slots (datagram.cpp, raw_packet.cpp).
#pragma once

#include "rnic/memory/segment_layout.hpp"
#include "rnic/peer.hpp"

namespace weir::rnic {

// Scope of one delivery. The target's reset and destroy wait until no sender is inside, because they free the
// ring.
class Delivery {
 public:
  explicit Delivery(QpContext& target) : target_(target) {
    // seq_cst: we count ourselves, then read the state; the owner stores the state, then reads the count.
    target_.datagram_senders.fetch_add(1, std::memory_order_seq_cst);
  }
  ~Delivery() { target_.datagram_senders.fetch_sub(1, std::memory_order_release); }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

 private:
  QpContext& target_;
};

inline bool receives(const QpContext& target, QpType type) {
  const auto state = static_cast<QpState>(target.state.load(std::memory_order_seq_cst));
  const bool receiving = state >= QpState::rtr && state <= QpState::sqe;
  return receiving && target.type == static_cast<std::uint16_t>(type) && target.recv_cq < max_cqs &&
         target.cq_line < max_qps;
}

// In the scope of a delivery to that queue pair: claims its next slot that has a receive, for `by`, a queue
// pair of ours. nullptr: there is none, and the datagram is lost.
DatagramSlot* claim_datagram(Peer&, std::uint32_t qp_index, Qpn by);
// Call once everything else in the slot is written: the datagram has arrived.
void publish_datagram(Peer&, std::uint32_t qp_index, DatagramSlot&);

}  // namespace weir::rnic
