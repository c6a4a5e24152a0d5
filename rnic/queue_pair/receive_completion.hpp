// The work completion of a receive, from what its initiator said of it.
#pragma once

#include "rnic/memory/arrived.hpp"

namespace weir::rnic {

// What it invalidated is said only where the message was taken.
inline WorkCompletion receive_completion(const ArrivedCqe& cqe, std::uint64_t wr_id, WcStatus status, Qpn by,
                                         Qpn from) {
  return {.wr_id = wr_id,
          .status = status,
          .opcode = cqe.opcode(),
          .has_imm = cqe.carries() == Carries::immediate,
          .has_invalidated = cqe.carries() == Carries::invalidate && status == WcStatus::success,
          .has_grh = false,
          .byte_len = cqe.byte_len(),
          .imm_be = cqe.imm_be(),
          .qpn = by.value(),
          .src_qpn = from.value(),
          .over_ipv4 = false};
}

}  // namespace weir::rnic
