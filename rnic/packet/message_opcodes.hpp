// Which place a packet has in its message, by its opcode (IBA 9.2.1); the same for every connected service.
#pragma once

#include "rnic/types.hpp"
#include "wire/opcodes.hpp"

namespace weir::rnic::packet {

inline constexpr std::uint32_t longest_message = 1u << 31;

constexpr bool is_first(wire::Operation op) {
  return op == wire::Operation::send_first || op == wire::Operation::write_first;
}
constexpr bool is_middle(wire::Operation op) {
  return op == wire::Operation::send_middle || op == wire::Operation::write_middle;
}
constexpr bool is_only(wire::Operation op) {
  using enum wire::Operation;
  return op == send_only || op == send_only_imm || op == send_only_invalidate || op == write_only ||
         op == write_only_imm;
}
constexpr bool is_write(wire::Operation op) {
  return op >= wire::Operation::write_first && op <= wire::Operation::write_only_imm;
}
constexpr bool carries_imm(wire::Operation op) {
  using enum wire::Operation;
  return op == send_last_imm || op == send_only_imm || op == write_last_imm || op == write_only_imm;
}
constexpr bool invalidates(wire::Operation op) {
  return op == wire::Operation::send_last_invalidate || op == wire::Operation::send_only_invalidate;
}

// Of a SEND or WRITE.
constexpr wire::Operation operation_of(SendOpcode opcode, bool first, bool last) {
  using enum wire::Operation;
  const bool imm = opcode == SendOpcode::rdma_write_with_imm || opcode == SendOpcode::send_with_imm;
  if (opcode == SendOpcode::rdma_write || opcode == SendOpcode::rdma_write_with_imm) {
    if (first && last) return imm ? write_only_imm : write_only;
    if (last) return imm ? write_last_imm : write_last;
    return first ? write_first : write_middle;
  }
  if (opcode == SendOpcode::send_with_invalidate && last)
    return first ? send_only_invalidate : send_last_invalidate;
  if (first && last) return imm ? send_only_imm : send_only;
  if (last) return imm ? send_last_imm : send_last;
  return first ? send_first : send_middle;
}

}  // namespace weir::rnic::packet
