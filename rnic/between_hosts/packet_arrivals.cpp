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
    found =
        senders_.emplace(datagram.source, Sender{ends, wire::IcrcRoute(ends, host_.wire_key()), {}}).first;
  }
  Sender& sender = found->second;
  const bool same =
      sender.ends.source_port == ends.source_port && sender.ends.destination == ends.destination;
  if (!same) {
    sender.ends = ends;
    sender.route = wire::IcrcRoute(ends, host_.wire_key());
  }
  return sender;
}

std::optional<wire::Packet> PacketArrivals::parse(const PacketDatagram& datagram) {
  if (datagram.bytes.size() < wire::icrc_bytes) return std::nullopt;
  const auto packet = wire::parse_transport(datagram.bytes.first(datagram.bytes.size() - wire::icrc_bytes));
  const bool ours = packet && packet->bth.version == 0 &&
                    (packet->bth.pkey & pkey_without_membership) == pkey_without_membership;
  return ours ? packet : std::nullopt;
}

bool PacketArrivals::is_intact(const PacketDatagram& datagram) {
  if (datagram.process != 0) return true;
  Sender& sender = sender_of(datagram);
  const auto id = sender.route.check(datagram.bytes, datagram.likely_id);
  return id && (*id == datagram.likely_id || sender.ids.believes(*id));
}

}  // namespace weir::rnic
