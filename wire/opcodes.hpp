// The opcodes of the BTH as data: which extended headers follow each (IBA volume 1, 9.2 and table 38; XRC:
// annex A14; ATOMIC WRITE: annex A19).
#pragma once

#include <cstdint>
#include <optional>

namespace weir::wire {

// The upper three bits: the transport service.
enum class Service : std::uint8_t { rc = 0, uc = 1, ud = 3, xrc = 5 };

// The lower five bits.
enum class Operation : std::uint8_t {
  send_first = 0,
  send_middle = 1,
  send_last = 2,
  send_last_imm = 3,
  send_only = 4,
  send_only_imm = 5,
  write_first = 6,
  write_middle = 7,
  write_last = 8,
  write_last_imm = 9,
  write_only = 10,
  write_only_imm = 11,
  read_request = 12,
  read_response_first = 13,
  read_response_middle = 14,
  read_response_last = 15,
  read_response_only = 16,
  acknowledge = 17,
  atomic_acknowledge = 18,
  compare_swap = 19,
  fetch_add = 20,
  send_last_invalidate = 22,
  send_only_invalidate = 23,
  atomic_write = 29,
};

// A congestion notification packet (annex A17): behind the BTH 16 bytes that mean nothing.
inline constexpr std::uint8_t congestion_notification = 0x81;

constexpr std::uint8_t opcode(Service service, Operation operation) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(service) << 5 | static_cast<unsigned>(operation));
}

// Extended headers, in the order in which they follow the BTH.
namespace extension {
inline constexpr unsigned deth = 1, xrceth = 2, reth = 4, atomic_eth = 8, aeth = 16, atomic_ack_eth = 32,
                          imm = 64, ieth = 128;
// May the packet carry payload?
inline constexpr unsigned payload = 256;
inline constexpr unsigned reserved = 512;
}  // namespace extension

// What follows a BTH with that opcode, as a set of extension:: flags; nullopt: no service here has that
// operation.
std::optional<unsigned> extensions_of(std::uint8_t opcode);

}  // namespace weir::wire
