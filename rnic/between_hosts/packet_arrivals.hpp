// Packets that have come: which of them are whole.
//
// A stranger may send anything. What is not RoCEv2 of version 0 with our P_Key, or whose ICRC is wrong, is
// dropped without a word (annex A17, CA17-24). Over IPv4 the ICRC covers an ID that a socket does not see; it
// is computed, and has to fit those that its sender used before.
//
// One caller at a time. Remembers `max_senders` addresses at most; one more takes the place of another.
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
