// The work completion of a receive, from what its initiator wrote about it.
#pragma once

#include "rnic/memory/arrived.hpp"

namespace weir::rnic {

// The invalidated key is reported only if the message was accepted.
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
