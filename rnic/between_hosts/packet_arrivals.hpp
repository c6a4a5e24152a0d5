// Packets that have arrived: checks which are intact.
//
// A stranger may send anything. A packet that is not RoCEv2 of version 0 with our P_Key, or whose ICRC is
// wrong, is dropped silently (annex A17, CA17-24). Over IPv4 the ICRC covers an IP ID that a socket does not
// see; the ID is computed from it, and must fit the IDs that its sender used before.
//
// One caller at a time. Remembers at most `max_senders` addresses; a further one replaces an old one.
#pragma once

#include <map>
#include <optional>

#include "rnic/peer.hpp"
#include "wire/icrc.hpp"

namespace weir::rnic {

class PacketArrivals {
 public:
  // A view into the datagram.
  std::optional<wire::Packet> check(const PacketDatagram& datagram);

  struct Counts {
    std::uint64_t packets = 0, wrong_icrc = 0, nonsense = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  static constexpr std::size_t max_senders = 4096;
  struct Sender {
    wire::IcrcRoute::Ends ends;
    wire::IcrcRoute route;
    wire::SenderIds ids;
  };
  Sender& sender_of(const PacketDatagram& datagram);

  std::map<Gid, Sender> senders_;
  Counts counts_;
};

}  // namespace weir::rnic
