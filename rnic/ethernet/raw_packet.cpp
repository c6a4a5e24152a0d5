#include "rnic/ethernet/raw_packet.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "rnic/datagrams/datagram_delivery.hpp"
#include "rnic/ethernet/receive_side_scaling.hpp"
#include "rnic/memory/copy.hpp"

namespace weir::rnic {

namespace {

struct EthernetFrame {
  std::span<const std::byte> bytes;
  FrameKey key;
};

constexpr std::uint32_t no_match = 0xffffffff;

bool matches(const SteeringRule& rule, const FrameWords& key) {
  for (std::size_t i = 0; i < key.size(); ++i)
    if ((key[i] & rule.mask[i]) != rule.value[i]) return false;
  return true;
}

// Calls visit(rule, index of its queue pair) for each rule of that process that matches the frame.
template <class Visit>
void for_each_match(SegmentHeader& header, const FrameWords& key, Visit visit) {
  const std::uint32_t used =
      std::min(header.steering_used.load(std::memory_order_acquire), max_steering_rules);
  for (std::uint32_t i = 0; i < used; ++i) {
    const SteeringRule& rule = header.steering[i];
    const std::uint32_t qp = rule.qp.load(std::memory_order_acquire);
    if (qp != 0 && qp <= max_qps && matches(rule, key)) visit(rule, qp - 1);
  }
}

// Call within a delivery to that receiver.
void receive(std::span<const std::byte> frame, Peer& peer, std::uint32_t index, Qpn by) {
  DatagramSlot* slot = claim_datagram(peer, index, by);
  if (slot == nullptr) return;
  std::memcpy(slot->bytes, frame.data(), frame.size());
  slot->byte_len = static_cast<std::uint32_t>(frame.size());
  slot->has_imm = false;
  slot->src_qpn = 0;
  slot->solicited = false;
  slot->multicast = false;
  publish_datagram(peer, index, *slot);
}

void deliver(const EthernetFrame& frame, Peer& peer, std::uint32_t index, Qpn by) {
  QpContext& target = peer.segment().qps[index];
  const Delivery delivery(target);
  if (receives(target, QpType::raw_packet)) return receive(frame.bytes, peer, index, by);
  if (!receives(target, QpType::rss)) return;
  const auto queue = scaled_queue(peer, target, frame.key);
  if (!queue) return;
  QpContext& work_queue = peer.segment().qps[*queue];
  const Delivery into(work_queue);
  if (receives(work_queue, QpType::work_queue)) receive(frame.bytes, peer, *queue, by);
}

}  // namespace

Outcome execute_frame(const QpCommon& qp, SendWqe& wqe, const Gather& payload, HostPort::Ticket& dial) {
  if (payload.bytes < ethernet_header_bytes || payload.bytes > max_frame_bytes) {
    wqe.status = WcStatus::loc_len_err;
    return Outcome::nak_invalid;
  }
  std::array<std::byte, max_frame_bytes> bytes;
  const Outcome gathered = copied(payload, {}, [&] { copy_gather(bytes.data(), payload.span()); });
  if (gathered != Outcome::done) return gathered;
  const std::span whole(bytes.data(), payload.bytes);
  const EthernetFrame frame{whole, frame_key(whole)};
  const FrameWords key = words_of(frame.key);
  const auto [everybody, undecided] = qp.nic.host.everybody(dial);
  if (undecided) return Outcome::connecting;
  std::uint32_t first = no_match;
  for (const PeerPtr& peer : everybody)
    if (peer->alive())
      for_each_match(peer->segment(), key, [&](const SteeringRule& rule, std::uint32_t) {
        first = std::min(first, rule.priority);
      });
  if (first == no_match) return Outcome::done;
  for (const PeerPtr& peer : everybody)
    if (peer->alive())
      for_each_match(peer->segment(), key, [&](const SteeringRule& rule, std::uint32_t index) {
        if (rule.priority == first) deliver(frame, *peer, index, qp.qpn);
      });
  return Outcome::done;
}

}  // namespace weir::rnic
