// Packets that have arrived: checks which are intact.
//
// A stranger may send anything. A packet that is not RoCEv2 of version 0 with our P_Key, or whose ICRC is
// wrong, is dropped silently (annex A17, CA17-24). Over IPv4 the ICRC covers an IP ID that a socket does not
// see; the ID is computed from it, and must fit the IDs that its sender used before.
//
// The ICRC is no secret and proves nothing about the sender, but costs more than everything else that is
// checked: ask is_intact() last. Where the host has a key, it proves that the sender has it too.
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
  // The host outlives it; it says which key there is.
  explicit PacketArrivals(const HostPort& host) : host_(host) {}
  // A view into the datagram; nullopt: no packet of ours.
  static std::optional<wire::Packet> parse(const PacketDatagram& datagram);
  // Of a datagram that parse() took.
  bool is_intact(const PacketDatagram& datagram);

 private:
  static constexpr std::size_t max_senders = 4096;
  struct Sender {
    wire::IcrcRoute::Ends ends;
    wire::IcrcRoute route;
    wire::SenderIds ids;
  };
  Sender& sender_of(const PacketDatagram& datagram);

  const HostPort& host_;
  std::map<Gid, Sender> senders_;
};

}  // namespace weir::rnic
