// Raw packet queue pairs: Ethernet frames, as the application made them, between processes of this host.
//
// There is no wire. A frame goes to the queue pairs whose steering rules it matches, in every process, the
// sender's own included; of rules of different priority only those of the first that match count. It travels
// as a datagram does (datagram.cpp), without a GRH in front. One that no rule matches, or that finds no
// receive posted, is lost, as on Ethernet. A queue pair that spreads its frames (receive_side_scaling.hpp)
// hands each to one of its work queues.
#include <algorithm>
#include <array>
#include <cstring>

#include "rnic/adapter.hpp"
#include "rnic/datagrams/datagram_delivery.hpp"
#include "rnic/ethernet/receive_side_scaling.hpp"
#include "rnic/memory/copy.hpp"
#include "rnic/queue_pair/queue_pair.hpp"

namespace weir::rnic {

struct EthernetFrame {
  std::span<const std::byte> bytes;
  FrameKey key;
};

namespace {

constexpr std::uint32_t no_match = 0xffffffff;

bool matches(const SteeringRule& rule, const FrameWords& key) {
  for (std::size_t i = 0; i < key.size(); ++i)
    if ((key[i] & rule.mask[i]) != rule.value[i]) return false;
  return true;
}

// Calls visit(rule, queue pair's index) for each rule of that process which the frame matches.
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

}  // namespace

Outcome QueuePair::execute_frame(SendWqe& wqe, const Gather& payload) {
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
  const auto [everybody, undecided] = nic_.host().everybody(dial_);
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
        if (rule.priority == first) deliver_frame(frame, *peer, index);
      });
  return Outcome::done;
}

void QueuePair::deliver_frame(const EthernetFrame& frame, Peer& peer, std::uint32_t index) {
  QpContext& target = peer.segment().qps[index];
  const Delivery delivery(target);
  if (receives(target, QpType::raw_packet)) return receive_frame(frame.bytes, peer, index);
  if (!receives(target, QpType::rss)) return;
  const auto queue = scaled_queue(peer, target, frame.key);
  if (!queue) return;
  QpContext& work_queue = peer.segment().qps[*queue];
  const Delivery into(work_queue);
  if (receives(work_queue, QpType::work_queue)) receive_frame(frame.bytes, peer, *queue);
}

// In the scope of a delivery to that receiver.
void QueuePair::receive_frame(std::span<const std::byte> frame, Peer& peer, std::uint32_t index) {
  DatagramSlot* slot = claim_datagram(peer, index);
  if (slot == nullptr) return;
  std::memcpy(slot->bytes, frame.data(), frame.size());
  slot->byte_len = static_cast<std::uint32_t>(frame.size());
  slot->has_imm = false;
  slot->src_qpn = 0;
  slot->solicited = false;
  slot->multicast = false;
  publish_datagram(peer, index, *slot);
}

}  // namespace weir::rnic
