// What the requests looked like that were executed last: tells a peer's repeated packet from a forged one.
//
// Whoever hits the expected PSN by trying out all of them has a packet executed in the peer's place, and the
// peer's own packet of that PSN then seems to have come before. If it were acknowledged, the peer would take
// for written what was never written. A packet that is sent again is the same as before, but for flags and
// what the program has meanwhile done to the payload; so one that differs in opcode, length, address or
// immediate is a stranger's, or comes after a stranger's. It is not answered, and the connection ends with
// the peer's retries instead of losing data.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "rnic/packet/psn.hpp"
#include "wire/roce.hpp"

namespace weir::rnic::packet {

class ExecutedRequests {
 public:
  // How far back it remembers: more than a peer with a window like ours has in flight.
  static constexpr std::uint32_t remembered = 256;

  // `takes`: its PSNs; a READ's response has as many packets.
  void note(const wire::Packet& packet, std::uint32_t takes) {
    const std::uint32_t psn = packet.bth.psn;
    prints_[psn % remembered] = print_of(packet);
    for (std::uint32_t i = 1; i < takes && i < remembered; ++i) prints_[(psn + i) % remembered] = inside;
  }
  // Whether a packet behind `expected` cannot be the one that was executed.
  bool contradicts(const wire::Packet& packet, Psn expected) const {
    if (expected - Psn(packet.bth.psn) > static_cast<std::int32_t>(remembered)) return false;
    const std::uint32_t executed = prints_[packet.bth.psn % remembered];
    return executed != unknown && executed != print_of(packet);
  }

 private:
  static constexpr std::uint32_t unknown = 0, inside = 1;  // of a response

  static std::uint32_t print_of(const wire::Packet& packet) {
    std::uint64_t mixed = packet.bth.opcode | std::uint64_t{packet.payload.size()} << 8;
    for (const std::uint64_t word :
         {packet.reth.addr, std::uint64_t{packet.reth.rkey} << 32 | packet.reth.length,
          std::uint64_t{packet.imm} << 32 | packet.invalidate, packet.atomic.addr,
          packet.atomic.compare ^ packet.atomic.swap_or_add, std::uint64_t{packet.srqn}}) {
      mixed = (mixed ^ word) * 0x9E3779B97F4A7C15u;
      mixed ^= mixed >> 29;
    }
    return static_cast<std::uint32_t>(mixed >> 32) | 2;
  }

  std::array<std::uint32_t, remembered> prints_{};
};

}  // namespace weir::rnic::packet
