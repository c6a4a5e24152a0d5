// A packet as bytes, without its ICRC, and the ICRC once its place in a run is known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "rnic/memory/copy.hpp"
#include "rnic/memory/trapped_copy.hpp"
#include "rnic/packet/outgoing.hpp"
#include "rnic/peer.hpp"
#include "wire/icrc.hpp"

namespace weir::rnic {

// `at` has room for udp_payload() bytes. False: the payload cannot be read.
inline bool lay_out(const packet::Outgoing& packet, std::byte* at) {
  std::memcpy(at, packet.header.data(), packet.header_bytes);
  std::byte* const payload = at + packet.header_bytes;
  if (packet.payload_bytes != 0) {
    const auto copy = [&] { copy_gather(payload, packet.payload()); };
    if (packet.is_ours)
      copy();
    else if (try_copy(packet.payload(), {}, copy) != Trapped::no)
      return false;
  }
  std::memset(payload + packet.payload_bytes, 0, packet.pad);
  return true;
}

// `place`: index in the run; the kernel numbers its packets from 0. Packets on this host carry no ICRC.
inline void seal(const PacketRoute& route, const wire::IcrcRoute& icrc, std::span<std::byte> packet,
                 std::uint16_t place) {
  const std::size_t covered = packet.size() - wire::icrc_bytes;
  std::array<std::byte, wire::icrc_bytes> sum{};
  if (route.process == 0) sum = icrc.of(packet.first(covered), place);
  std::memcpy(packet.data() + covered, sum.data(), sum.size());
}

}  // namespace weir::rnic
