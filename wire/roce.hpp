// A RoCEv2 packet (annex A17): Ethernet, IPv4 or IPv6, UDP to port 4791, BTH and what follows it, ICRC.
//
// encode() and parse() are each other's inverse for every packet that parse() accepts. Numbers are in host
// order, immediates too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "wire/icrc.hpp"
#include "wire/opcodes.hpp"

namespace weir::wire {

inline constexpr std::uint16_t roce_port = 4791;
using Mac = std::array<std::uint8_t, 6>;

struct Ipv4 {
  std::array<std::uint8_t, 4> source, destination;
  std::uint8_t tos = 0, ttl = 64;
  std::uint16_t id = 0;
  std::uint16_t fragment = 0x4000;  // flags and offset; DF
};
struct Ipv6 {
  std::array<std::uint8_t, 16> source, destination;
  std::uint8_t traffic_class = 0, hop_limit = 64;
  std::uint32_t flow_label = 0;
};

struct Route {
  Mac source{}, destination{};
  std::variant<Ipv4, Ipv6> ip;
  std::uint16_t source_port = roce_port;
  std::uint16_t udp_checksum = 0;  // none: the ICRC covers more; as it came, not checked
};

struct Bth {  // 9.2
  std::uint8_t opcode = 0;
  bool solicited = false, migrated = false, ack_request = false;
  std::uint8_t version = 0;
  std::uint16_t pkey = 0xffff;
  std::uint32_t destination = 0;  // QPN
  std::uint32_t psn = 0;
  std::uint8_t variable = 0;  // FECN, BECN and what is reserved beside them: ignored, not in the ICRC
};
struct Deth {
  std::uint32_t qkey = 0, source = 0;
};
struct Reth {
  std::uint64_t addr = 0;
  std::uint32_t rkey = 0, length = 0;
};
struct AtomicEth {
  std::uint64_t addr = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_or_add = 0, compare = 0;
};
struct Aeth {  // 9.3.5; syndrome: table 45
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;
};
inline constexpr std::uint8_t ack_without_credit = 0x1f, rnr_nak = 0x20, nak = 0x60;
inline constexpr std::uint8_t nak_invalid_request = 1, nak_remote_access = 2, nak_remote_operational = 3;

// Only the extended headers that the opcode has are used.
struct Packet {
  Bth bth;
  Deth deth;
  std::uint32_t srqn = 0;
  Reth reth;
  AtomicEth atomic;
  Aeth aeth;
  std::uint64_t original = 0;    // AtomicAckETH
  std::uint32_t imm = 0;         // ImmDt
  std::uint32_t invalidate = 0;  // IETH
  std::span<const std::byte> payload;
};

struct Frame {
  Route route;
  Packet packet;
};

// BTH and the extended headers that can follow one: XRCETH and AtomicETH.
inline constexpr std::size_t longest_headers = 12 + 4 + 28;

// Writes the BTH of a packet and its opcode's headers, up to the payload, whose length alone counts here
// (the BTH says how much padding follows it). Returns the number of bytes. The opcode must have
// extensions (extensions_of).
std::size_t encode_headers(const Packet&, std::size_t payload, std::span<std::byte, longest_headers> to);
// A packet from its BTH up to the ICRC, which is not part of `bytes` and is checked elsewhere
// (IcrcRoute::check). The payload is a view into `bytes`. nullopt: cut off, unknown, or a header that
// contradicts another.
std::optional<Packet> parse_transport(std::span<const std::byte> bytes);
// The QPN that a packet is for, from its BTH alone; 0: it is too short to have one.
std::uint32_t destination_of(std::span<const std::byte> from_bth);
// Zero bytes behind a payload, up to a multiple of four.
constexpr std::uint8_t pad_of(std::size_t payload) {
  return static_cast<std::uint8_t>((4 - payload % 4) % 4);
}

// The opcode must have extensions (extensions_of).
std::vector<std::byte> encode(const Frame&);
// Puts Ethernet, IP and UDP around what a UDP socket sends or receives, BTH to ICRC, without reading it.
// Makes the UDP checksum as the kernel does; the route's is not used.
std::vector<std::byte> encapsulate(const Route&, std::span<const std::byte> udp_payload);
// Views into `bytes`, which must outlive the frame. nullopt: cut off, no RoCEv2, a header that contradicts
// another, or an ICRC that is wrong.
std::optional<Frame> parse(std::span<const std::byte> bytes);

}  // namespace weir::wire
