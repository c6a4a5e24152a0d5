#include "rnic/datagrams/datagram_delivery.hpp"

#include "rnic/memory/claimed_ring.hpp"
#include "rnic/queue_pair/completion_signal.hpp"
#include "rnic/same_host/remote_srq.hpp"

namespace weir::rnic {

DatagramSlot* claim_datagram(Peer& peer, std::uint32_t index, Qpn by) {
  QpContext& target = peer.segment().qps[index];
  const std::uint32_t mask = target.cqe_mask;
  auto* slots = at_offset<DatagramSlot>(peer.segment_base(), peer.segment_size(), target.cqe_offset,
                                        std::uint64_t{mask} + 1);
  if (slots == nullptr) return nullptr;
  DatagramSlot* slot = claim_slot(target.datagram_next, target.rq_posted, slots, mask, by.slot());
  if (slot == nullptr) {
    peer.segment().qp_counters[index].datagrams_dropped.shared_add(1);
    return nullptr;
  }
  slot->wqe = no_wqe;
  if (target.srq != 0) {
    RemoteSrq srq;
    if (TakenReceive taken; srq.connect(peer, target.srq - 1) && srq.claim(by, taken))
      slot->wqe = taken.number;
  }
  return slot;
}

void publish_datagram(Peer& peer, std::uint32_t index, DatagramSlot& slot) {
  const QpContext& target = peer.segment().qps[index];
  const Solicited solicited = slot.solicited ? Solicited::yes : Solicited::no;  // the owner's once completed
  complete_slot(slot);
  CqContext& cq = peer.segment().cqs[target.recv_cq];
  mark_ready(cq, target.cq_line);
  if (!take_armed(cq, solicited)) return;
  peer.segment().qp_counters[index].receive_wakeups.shared_add(1);
  peer.raise_cq_event(target.recv_cq);
}

}  // namespace weir::rnic
