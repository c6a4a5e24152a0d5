#include "rnic/between_hosts/packet_arrivals.hpp"

namespace weir::rnic {
namespace {

constexpr std::uint16_t pkey_without_membership = 0x7fff;

}  // namespace

PacketArrivals::Sender& PacketArrivals::sender_of(const PacketDatagram& datagram) {
  const wire::IcrcRoute::Ends ends{.source = datagram.source,
                                   .destination = datagram.destination,
                                   .source_port = datagram.source_port,
                                   .destination_port = wire::roce_port};
  auto found = senders_.find(datagram.source);
  if (found == senders_.end()) {
    if (senders_.size() >= max_senders) senders_.erase(senders_.begin());
    found = senders_.emplace(datagram.source, Sender{ends, wire::IcrcRoute(ends), {}}).first;
  }
  Sender& sender = found->second;
  const bool same =
      sender.ends.source_port == ends.source_port && sender.ends.destination == ends.destination;
  if (!same) {
    sender.ends = ends;
    sender.route = wire::IcrcRoute(ends);
  }
  return sender;
}

std::optional<wire::Packet> PacketArrivals::check(const PacketDatagram& datagram) {
  ++counts_.packets;
  if (datagram.bytes.size() < wire::icrc_bytes) {
    ++counts_.nonsense;
    return std::nullopt;
  }
  const auto packet = wire::parse_transport(datagram.bytes.first(datagram.bytes.size() - wire::icrc_bytes));
  const bool ours = packet && packet->bth.version == 0 &&
                    (packet->bth.pkey & pkey_without_membership) == pkey_without_membership;
  if (!ours) {
    ++counts_.nonsense;
    return std::nullopt;
  }
  if (datagram.process != 0) return packet;
  Sender& sender = sender_of(datagram);
  const auto id = sender.route.check(datagram.bytes, datagram.likely_id);
  if (!id || (*id != datagram.likely_id && !sender.ids.believes(*id))) {
    ++counts_.wrong_icrc;
    return std::nullopt;
  }
  return packet;
}

}  // namespace weir::rnic
