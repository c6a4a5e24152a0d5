// A packet on its way out: its headers as bytes, its payload where it lies.
//
// The caller sends header, pieces, `pad` zero bytes and the ICRC (wire/icrc.hpp), in that order. The pieces
// point into registered memory or into a WQE; they stand until the caller has sent the packet, for which it
// keeps the lock under which it asked for it.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "rnic/packet/psn.hpp"
#include "wire/roce.hpp"

namespace weir::rnic::packet {

struct Outgoing {
  // BTH and what follows it up to the payload.
  std::array<std::byte, wire::longest_headers> header;
  std::uint8_t header_bytes;
  std::uint8_t pad;  // 0..3
  bool is_ours;      // the payload is a WQE's inline data: nobody unmaps it
  bool retransmitted;
  std::uint32_t payload_bytes;
  Psn psn;
  std::uint32_t wqe;  // a request: its place in the send queue (Requester::unreadable)

  // Where the payload lies. `room` is the caller's: max_sge entries at least, before each call.
  std::span<iovec> room;
  std::uint32_t pieces;

  std::span<const std::byte> headers() const { return {header.data(), header_bytes}; }
  std::span<const iovec> payload() const { return room.first(pieces); }
  // BTH to ICRC.
  std::size_t udp_payload() const { return header_bytes + payload_bytes + pad + wire::icrc_bytes; }
};

}  // namespace weir::rnic::packet
