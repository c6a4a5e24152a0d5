// Which operations each transport service has.
#pragma once

#include <cstdint>

#include "rnic/types.hpp"

namespace weir::rnic {

// IBA table 35: the operations of each transport service.
constexpr std::uint32_t bit_of(SendOpcode opcode) { return 1u << static_cast<unsigned>(opcode); }
inline constexpr std::uint32_t raw_opcodes = bit_of(SendOpcode::send);
inline constexpr std::uint32_t ud_opcodes = bit_of(SendOpcode::send) | bit_of(SendOpcode::send_with_imm);
inline constexpr std::uint32_t uc_opcodes =
    ud_opcodes | bit_of(SendOpcode::rdma_write) | bit_of(SendOpcode::rdma_write_with_imm) |
    bit_of(SendOpcode::bind_window) | bit_of(SendOpcode::local_invalidate);
inline constexpr std::uint32_t rc_opcodes =
    uc_opcodes | bit_of(SendOpcode::rdma_read) | bit_of(SendOpcode::compare_and_swap) |
    bit_of(SendOpcode::fetch_and_add) | bit_of(SendOpcode::send_with_invalidate) |
    bit_of(SendOpcode::atomic_write);

constexpr bool has_opcode(QpType type, SendOpcode opcode) {
  if (static_cast<unsigned>(opcode) >= 32) return false;
  switch (type) {
    case QpType::rc:
    case QpType::xrc_send:
      return rc_opcodes & bit_of(opcode);
    case QpType::uc:
      return uc_opcodes & bit_of(opcode);
    case QpType::ud:
      return ud_opcodes & bit_of(opcode);
    case QpType::raw_packet:
      return raw_opcodes & bit_of(opcode);
    case QpType::xrc_recv:
    case QpType::work_queue:
    case QpType::rss:
      break;
  }
  return false;
}

}  // namespace weir::rnic
