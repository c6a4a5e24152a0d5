// The headers before the bytes of a datagram rsocket, as rdma-core's: one for those that go through the UDP
// socket while the receiver's queue pair is not known, one for those that go from queue pair to queue pair.
//
// Nothing that arrives is believed: a parse yields a header only if every field is legal. Values; safe from
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "verbs/cm/endpoint.hpp"

namespace weir::rsocket {

enum class DatagramOp : std::uint8_t {
  data = 0,     // bytes follow; answer with your queue pair
  control = 7,  // nothing follows; this is my queue pair
};

// In UDP. `address`: where the datagram was sent to; its form, IPv4 or IPv6, must be that of the UDP socket.
struct UdpHeader {
  DatagramOp op{};
  std::uint32_t qpn = 0;  // the sender's, 24 bits
  cm::IpBytes address{};
};
// On a queue pair: who sent it.
struct UdHeader {
  cm::Endpoint source;
};

inline constexpr std::size_t max_udp_header_bytes = 28;
inline constexpr std::size_t max_ud_header_bytes = 24;

// Appended to `bytes`.
void append(std::vector<std::byte>& bytes, const UdpHeader& header);
void append(std::vector<std::byte>& bytes, const UdHeader& header);

template <class Header>
struct Parsed {
  Header header;
  std::span<const std::byte> rest;
};
std::optional<Parsed<UdpHeader>> parse_udp(std::span<const std::byte> bytes);
std::optional<Parsed<UdHeader>> parse_ud(std::span<const std::byte> bytes);

}  // namespace weir::rsocket
