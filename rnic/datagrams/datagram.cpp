// Unreliable datagrams: requester and responder roles of UD queue pairs. The owner's side of what arrives is
// datagram_slots.hpp.
//
// Any process may send to a UD queue pair, so its receive side is a ring of slots claimed by
// compare-exchange. With an SRQ the slots are open from the beginning, and the sender takes a receive from
// the SRQ once it has a slot. The payload (at most one MTU, behind its 40-byte GRH) always travels through
// the slot; the owner's poll scatters it. A slot can be claimed only while a receive is posted; with none, or
// with a wrong Q_Key, the datagram is dropped, as the specification says. A sender that dies between claim
// and completion leaves a hole at which polling stops until the end of that process is noticed and the hole
// becomes an empty datagram.
#include <algorithm>
#include <cstring>

#include "rnic/adapter.hpp"
#include "rnic/between_hosts/packet_path.hpp"
#include "rnic/datagrams/datagram_delivery.hpp"
#include "rnic/datagrams/datagram_packets.hpp"
#include "rnic/memory/claimed_ring.hpp"
#include "rnic/memory/copy.hpp"
#include "rnic/queue_pair/queue_pair.hpp"
#include "wire/byte_order.hpp"

namespace weir::rnic {
namespace {

// Before a slot is claimed, which cannot be given back. It is shorter than a page.
Outcome look_at(const Gather& payload) {
  return copied(payload, {}, [&] {
    for (const iovec& piece : payload.span()) {
      const auto* const bytes = static_cast<const volatile std::byte*>(piece.iov_base);
      (void)bytes[0];
      (void)bytes[piece.iov_len - 1];
    }
  });
}

}  // namespace

// On its way to one receiver.
struct QueuePair::Datagram {
  const Gather& payload;
  const Grh* grh = nullptr;  // without its length
  std::uint32_t source = 0;  // QPN
  std::uint32_t qkey = 0;
  std::uint32_t imm_be = 0;
  bool has_imm = false, solicited = false, multicast = false;
};

QueuePair::Datagram QueuePair::datagram_of(const SendWqe& wqe, const Gather& payload) const {
  // A Q_Key with its top bit set means: use the queue pair's own (IBA 10.2.5).
  return {.payload = payload,
          .grh = wqe.datagram.path != nullptr ? &wqe.datagram.path->grh : nullptr,
          .source = qp_.qpn.value(),
          .qkey = wqe.datagram.qkey & 0x80000000u ? attributes_.qkey : wqe.datagram.qkey,
          .imm_be = wqe.imm_be,
          .has_imm = wqe.opcode == SendOpcode::send_with_imm,
          .solicited = wqe.solicited,
          .multicast = wqe.datagram.destination == multicast_destination};
}

Outcome QueuePair::execute_datagram(SendWqe& wqe, const Gather& payload) {
  const std::uint32_t packet_bytes = wqe.datagram.path != nullptr ? wqe.datagram.path->packet_bytes : 0;
  if (payload.bytes > (packet_bytes != 0 ? packet_bytes : qp_.config.mtu_bytes)) {
    wqe.status = WcStatus::loc_len_err;
    return Outcome::nak_invalid;
  }
  const Qpn to = wqe.datagram.destination;
  const bool to_one = to != multicast_destination && to != Qpn();
  if (packet_bytes != 0 && to_one) return send_datagram(wqe, payload);
  if (const Outcome there = look_at(payload); there != Outcome::done) return there;
  if (to == multicast_destination) {
    const Outcome here = multicast(wqe, payload);
    return here == Outcome::done && packet_bytes != 0 ? send_datagram(wqe, payload) : here;
  }
  if (const std::uint64_t process = nic_.host().known_process_in(to.slot()); process != 0)
    return send_datagram(wqe, payload, process);
  const HostPort::Reached reached = nic_.host().reach(to.slot(), dial_);
  if (reached.undecided) return Outcome::connecting;
  if (!reached.peer && !reached.silent)
    if (const std::uint64_t process = nic_.host().process_in(to.slot()); process != 0)
      return send_datagram(wqe, payload, process);
  if (reached.peer && reached.peer->alive())
    deliver_datagram(datagram_of(wqe, payload), *reached.peer, to.index());
  return Outcome::done;  // nobody there: lost, and the sender cannot know
}

// `process`: of another user of this host; 0: to another host.
Outcome QueuePair::send_datagram(const SendWqe& wqe, const Gather& payload, std::uint64_t process) {
  if (wqe.datagram.path == nullptr) return Outcome::done;
  if (datagram_packets_ == nullptr)
    datagram_packets_ = std::make_unique<DatagramPackets>(nic_.host(), qp_.qpn);
  poll_packets();
  if (!datagram_packets_->add(wqe, datagram_of(wqe, payload).qkey, process, payload))
    return Outcome::local_fault;
  qp_.counters.requests_out.add(1);
  return Outcome::done;
}

// Of another host or user, and found whole. Where no receive is posted it is lost, as one of this host is.
void QueuePair::receive_datagram(const ArrivedPacket& arrived) {
  const wire::Packet& packet = arrived.packet;
  const bool has_imm = packet.bth.opcode == wire::opcode(wire::Service::ud, wire::Operation::send_only_imm);
  const bool is_datagram_packet =
      has_imm || packet.bth.opcode == wire::opcode(wire::Service::ud, wire::Operation::send_only);
  if (!is_datagram_packet || packet.payload.size() > max_datagram_bytes) return;
  // Another user's process speaks for its own queue pairs only.
  const bool forged = Qpn(packet.deth.source).slot() != arrived.slot || !nic_.host().is_ours(arrived.source);
  if (arrived.process != 0 && forged) return;
  const PeerPtr self = nic_.host().peer(nic_.slot(), HostPort::Wait::no);
  if (self == nullptr) return;
  Gather payload;
  if (!packet.payload.empty()) {
    payload.pieces[0] = {const_cast<std::byte*>(packet.payload.data()), packet.payload.size()};
    payload.count = 1;
    payload.bytes = packet.payload.size();
  }
  payload.is_ours = true;
  const Grh grh = write_grh({.source = arrived.source,
                             .destination = arrived.destination,
                             .traffic_class = arrived.traffic_class,
                             .hop_limit = arrived.hop_limit});
  poll_packets();
  deliver_datagram({.payload = payload,
                    .grh = &grh,
                    .source = packet.deth.source,
                    .qkey = packet.deth.qkey,
                    .imm_be = wire::swap_network(packet.imm),
                    .has_imm = has_imm,
                    .solicited = packet.bth.solicited,
                    .multicast = Qpn(packet.bth.destination) == multicast_destination},
                   *self, qp_.qpn.index());
}

// To every attached queue pair of every process of this host, the sender's own included. Each receives a copy
// of its own, or none, as with datagrams everywhere. Other hosts get one packet for all.
Outcome QueuePair::multicast(const SendWqe& wqe, const Gather& payload) {
  const auto [everybody, undecided] = nic_.host().everybody(dial_);
  if (undecided) return Outcome::connecting;
  qp_.counters.multicasts_sent.add(1);
  if (wqe.datagram.path == nullptr) return Outcome::done;
  const Gid group = wqe.datagram.path->group;
  const Datagram datagram = datagram_of(wqe, payload);
  for (const PeerPtr& peer : everybody) {
    if (!peer->alive()) continue;
    SegmentHeader& header = peer->segment();
    const std::uint32_t used =
        std::min(header.multicast_used.load(std::memory_order_acquire), max_multicast_attachments);
    for (std::uint32_t i = 0; i < used; ++i) {
      const MulticastEntry& entry = header.multicast[i];
      const std::uint32_t qp = entry.qp.load(std::memory_order_acquire);
      if (qp == 0 || qp > max_qps || entry.gid != group) continue;
      deliver_datagram(datagram, *peer, qp - 1);
    }
  }
  return Outcome::done;
}

void QueuePair::deliver_datagram(const Datagram& datagram, Peer& peer, std::uint32_t index) {
  QpContext& target = peer.segment().qps[index];
  const Delivery delivery(target);
  if (!receives(target, QpType::ud) || target.qkey.load(std::memory_order_relaxed) != datagram.qkey) return;
  DatagramSlot* slot = claim_datagram(peer, index);
  if (slot == nullptr) return;
  if (datagram.grh != nullptr)
    std::memcpy(slot->bytes, datagram.grh->data(), grh_bytes);
  else
    std::memset(slot->bytes, 0, grh_bytes);
  // One whose payload went away since it was looked at arrives empty.
  const Gather& payload = datagram.payload;
  const Outcome moved = copied(payload, {}, [&] { copy_gather(slot->bytes + grh_bytes, payload.span()); });
  slot->byte_len = (moved == Outcome::done ? static_cast<std::uint32_t>(payload.bytes) : 0) + grh_bytes;
  slot->imm_be = datagram.imm_be;
  slot->has_imm = datagram.has_imm;
  finish_grh(std::span(slot->bytes).first<grh_bytes>(), payload.bytes, slot->has_imm);
  slot->src_qpn = datagram.source;
  slot->solicited = datagram.solicited;
  slot->multicast = datagram.multicast;
  publish_datagram(peer, index, *slot);
}

// The target's next slot with a receive for it, or nullptr: then there is none, and the datagram is lost.
DatagramSlot* QueuePair::claim_datagram(Peer& peer, std::uint32_t index) const {
  QpContext& target = peer.segment().qps[index];
  const std::uint32_t mask = target.cqe_mask;
  auto* slots = at_offset<DatagramSlot>(peer.segment_base(), peer.segment_size(), target.cqe_offset,
                                        std::uint64_t{mask} + 1);
  if (slots == nullptr) return nullptr;
  DatagramSlot* slot = claim_slot(target.datagram_next, target.rq_posted, slots, mask, qp_.qpn.slot());
  if (slot == nullptr) {
    peer.segment().qp_counters[index].datagrams_dropped.shared_add(1);
    return nullptr;
  }
  slot->wqe = no_wqe;
  if (target.srq != 0) {
    RemoteSrq srq;
    if (TakenReceive taken; srq.connect(peer, target.srq - 1) && srq.claim(qp_.qpn, taken))
      slot->wqe = taken.number;
  }
  return slot;
}

void QueuePair::publish_datagram(Peer& peer, std::uint32_t index, DatagramSlot& slot) {
  const QpContext& target = peer.segment().qps[index];
  const Solicited solicited = slot.solicited ? Solicited::yes : Solicited::no;  // the owner's, once complete
  complete_slot(slot);
  CqContext& cq = peer.segment().cqs[target.recv_cq];
  mark_ready(cq, target.cq_line);
  if (!take_armed(cq, solicited)) return;
  peer.segment().qp_counters[index].receive_wakeups.shared_add(1);
  peer.raise_cq_event(target.recv_cq);
}

}  // namespace weir::rnic
