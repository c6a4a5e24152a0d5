// The invariant CRC of RoCEv2 (IBA 7.8.1, annex A17.3.3): CRC-32 over the packet from its IP header on, with
// the fields that switches change replaced by ones.
//
// A process behind a UDP socket has no IP header: IcrcRoute builds one from addresses and ports.
//
// Two NICs that share a secret may put a keyed check in its place (keyed_icrc.hpp): an IcrcRoute with a key
// makes that, and takes nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/keyed_icrc.hpp"

namespace weir::wire {

inline constexpr std::size_t icrc_bytes = 4;

// `packet` begins with the IP header and ends where the ICRC begins. The result stands little-endian in the
// packet.
std::uint32_t icrc(std::span<const std::byte> packet);

// What the ICRC covers in front of the BTH of every packet from one address and port to another.
class IcrcRoute {
 public:
  using Address = std::array<std::uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d
  struct Ends {
    Address source{}, destination{};
    std::uint16_t source_port = 0, destination_port = 0;
  };
  // `key`: nullptr for the ICRC of the specification.
  explicit IcrcRoute(const Ends&, const hash::SipKey* key = nullptr);

  bool is_ipv4() const { return ipv4_; }

  // The ICRC as it stands in the packet. `from_bth`: everything from the BTH up to it. `ipv4_id`: of the IP
  // header (DF is taken as set); of the i-th packet of a GSO batch it is i. IPv6 has none, and a keyed check
  // does not cover it.
  std::array<std::byte, icrc_bytes> of(std::span<const std::byte> from_bth, std::uint16_t ipv4_id = 0) const;

  // Is that packet, BTH to ICRC, sound? Over IPv4 the ID that it was sent with is not seen by a socket; it is
  // computed from the ICRC, and returned: an ID far from those that its sender used before is a packet that
  // was changed on its way (SenderIds). nullopt: wrong. `likely_id` costs least. With a key, the ID is
  // `likely_id`.
  std::optional<std::uint16_t> check(std::span<const std::byte> udp_payload,
                                     std::uint16_t likely_id = 0) const;

 private:
  std::uint32_t crc(std::span<const std::byte> from_bth, std::uint16_t ipv4_id) const;

  std::array<std::byte, 8 + 40 + 8> head_{};  // LRH of ones, IP, UDP; length and ID are still to be filled in
  std::uint8_t bytes_ = 0;
  bool ipv4_ = false;
  std::optional<KeyedIcrc> keyed_;
};

// The IPv4 IDs that one sender uses. They tell a corrupted packet, whose ICRC yields some random ID, from an
// intact one. IDs that count up, stay the same, or restart with each batch are recognised quickly; a sender
// whose IDs are random is believed without them.
class SenderIds {
 public:
  // Whether to believe the packet. Call once for each packet that check() found intact.
  bool believes(std::uint16_t id);
  std::uint16_t likely() const { return static_cast<std::uint16_t>(last_ + step_); }

 private:
  std::uint16_t last_ = 0, step_ = 0, candidate_ = 0;
  std::uint8_t near_ = 0;  // in a row
  bool has_candidate_ = false;
};

}  // namespace weir::wire
