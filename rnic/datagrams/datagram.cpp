#include "rnic/datagrams/datagram.hpp"

#include <algorithm>
#include <cstring>

#include "rnic/datagrams/datagram_delivery.hpp"
#include "rnic/datagrams/datagram_packets.hpp"
#include "rnic/memory/copy.hpp"
#include "wire/byte_order.hpp"

namespace weir::rnic {

// A datagram on its way to one receiver.
struct Datagram {
  const Gather& payload;
  const Grh* grh = nullptr;  // without its length
  std::uint32_t source = 0;  // QPN
  std::uint32_t qkey = 0;
  std::uint32_t imm_be = 0;
  bool has_imm = false, solicited = false, multicast = false;
};

namespace {

// Runs before a slot is claimed, because a claim cannot be undone. A payload is shorter than a page.
Outcome look_at(const Gather& payload) {
  return copied(payload, {}, [&] {
    for (const iovec& piece : payload.span()) {
      const auto* const bytes = static_cast<const volatile std::byte*>(piece.iov_base);
      (void)bytes[0];
      (void)bytes[piece.iov_len - 1];
    }
  });
}

void deliver(const Datagram& datagram, Peer& peer, std::uint32_t index, Qpn by) {
  QpContext& target = peer.segment().qps[index];
  const Delivery delivery(target);
  if (!receives(target, QpType::ud) || target.qkey.load(std::memory_order_relaxed) != datagram.qkey) return;
  DatagramSlot* slot = claim_datagram(peer, index, by);
  if (slot == nullptr) return;
  if (datagram.grh != nullptr)
    std::memcpy(slot->bytes, datagram.grh->data(), grh_bytes);
  else
    std::memset(slot->bytes, 0, grh_bytes);
  // A payload that was unmapped since look_at() arrives empty.
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

}  // namespace

DatagramSender::DatagramSender(const QpCommon& qp, PacketPolling& polling) : qp_(qp), polling_(polling) {}
DatagramSender::~DatagramSender() = default;

void DatagramSender::send() {
  if (packets_ != nullptr) packets_->send();
}

Datagram DatagramSender::datagram_of(const SendWqe& wqe, const Gather& payload) const {
  // A Q_Key with its top bit set means the queue pair's own Q_Key (IBA 10.2.5).
  return {.payload = payload,
          .grh = wqe.datagram.path != nullptr ? &wqe.datagram.path->grh : nullptr,
          .source = qp_.qpn.value(),
          .qkey = wqe.datagram.qkey & 0x80000000u ? qp_.attributes.qkey : wqe.datagram.qkey,
          .imm_be = wqe.imm_be,
          .has_imm = wqe.opcode == SendOpcode::send_with_imm,
          .solicited = wqe.solicited,
          .multicast = wqe.datagram.destination == multicast_destination};
}

Outcome DatagramSender::execute(SendWqe& wqe, const Gather& payload, HostPort::Ticket& dial) {
  const std::uint32_t packet_bytes = wqe.datagram.path != nullptr ? wqe.datagram.path->packet_bytes : 0;
  if (payload.bytes > (packet_bytes != 0 ? packet_bytes : qp_.config.mtu_bytes)) {
    wqe.status = WcStatus::loc_len_err;
    return Outcome::nak_invalid;
  }
  const Qpn to = wqe.datagram.destination;
  const bool to_one = to != multicast_destination && to != Qpn();
  if (packet_bytes != 0 && to_one) return send_in_packet(wqe, payload);
  if (const Outcome there = look_at(payload); there != Outcome::done) return there;
  if (to == multicast_destination) {
    if (const Outcome here = multicast(wqe, payload, dial); here != Outcome::done) return here;
    if (const Outcome users = multicast_to_users(wqe, payload); users != Outcome::done) return users;
    return packet_bytes != 0 ? send_in_packet(wqe, payload) : Outcome::done;
  }
  if (const std::uint64_t process = qp_.nic.host.known_process_in(to.slot()); process != 0)
    return send_in_packet(wqe, payload, process);
  const HostPort::Reached reached = qp_.nic.host.reach(to.slot(), dial);
  if (reached.undecided) return Outcome::connecting;
  if (!reached.peer && !reached.silent)
    if (const std::uint64_t process = qp_.nic.host.process_in(to.slot()); process != 0)
      return send_in_packet(wqe, payload, process);
  if (reached.peer && reached.peer->alive())
    deliver(datagram_of(wqe, payload), *reached.peer, to.index(), qp_.qpn);
  return Outcome::done;  // nobody is there: the datagram is lost, and the sender cannot know
}

// `process`: a process of another user on this host; 0: the destination is another host.
Outcome DatagramSender::send_in_packet(const SendWqe& wqe, const Gather& payload, std::uint64_t process) {
  if (wqe.datagram.path == nullptr) return Outcome::done;
  if (packets_ == nullptr) packets_ = std::make_unique<DatagramPackets>(qp_.nic.host, qp_.qpn);
  polling_.begin();
  if (!packets_->add(wqe, datagram_of(wqe, payload).qkey, process, payload)) return Outcome::local_fault;
  qp_.counters.requests_out.add(1);
  return Outcome::done;
}

// A complete packet from another host or user. If no receive is posted, it is lost, as on one host.
void receive_datagram(const QpCommon& qp, const ArrivedPacket& arrived) {
  const wire::Packet& packet = arrived.packet;
  const bool has_imm = packet.bth.opcode == wire::opcode(wire::Service::ud, wire::Operation::send_only_imm);
  const bool is_datagram_packet =
      has_imm || packet.bth.opcode == wire::opcode(wire::Service::ud, wire::Operation::send_only);
  if (!is_datagram_packet || packet.payload.size() > max_datagram_bytes) return;
  // A process of another user may send only from its own queue pairs.
  const bool forged = Qpn(packet.deth.source).slot() != arrived.slot || !qp.nic.host.is_ours(arrived.source);
  if (arrived.process != 0 && forged) return;
  const PeerPtr self = qp.nic.host.peer(qp.nic.slot, HostPort::Wait::no);
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
  deliver({.payload = payload,
           .grh = &grh,
           .source = packet.deth.source,
           .qkey = packet.deth.qkey,
           .imm_be = wire::swap_network(packet.imm),
           .has_imm = has_imm,
           .solicited = packet.bth.solicited,
           .multicast = Qpn(packet.bth.destination) == multicast_destination},
          *self, qp.qpn.index(), qp.qpn);
}

// Each process of another user that is in the group gets its own packet, and finds its receivers itself.
Outcome DatagramSender::multicast_to_users(const SendWqe& wqe, const Gather& payload) {
  if (wqe.datagram.path == nullptr) return Outcome::done;
  members_.clear();
  qp_.nic.host.append_members(wqe.datagram.path->group, members_);
  for (const std::uint64_t process : members_)
    if (const Outcome sent = send_in_packet(wqe, payload, process); sent != Outcome::done) return sent;
  return Outcome::done;
}

// Delivers to every attached queue pair of every process on this host, including the sender's own. Each
// receives its own copy or, as with any datagram, none. Other hosts share one packet.
Outcome DatagramSender::multicast(const SendWqe& wqe, const Gather& payload, HostPort::Ticket& dial) {
  const auto [everybody, undecided] = qp_.nic.host.everybody(dial);
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
      deliver(datagram, *peer, qp - 1, qp_.qpn);
    }
  }
  return Outcome::done;
}

}  // namespace weir::rnic
