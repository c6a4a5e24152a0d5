// The part of a send WQE that concerns our own memory and our own protection table, the same for both paths.
// Under the send lock.
#pragma once

#include <optional>

#include "rnic/memory/gather.hpp"
#include "rnic/queue_pair/qp_common.hpp"

namespace weir::rnic {

// READ and the atomics.
constexpr bool brings_data_back(SendOpcode opcode) {
  return opcode >= SendOpcode::rdma_read && opcode <= SendOpcode::fetch_and_add;
}
// Touches only our own table.
constexpr bool is_local(SendOpcode opcode) {
  return opcode == SendOpcode::local_invalidate || opcode == SendOpcode::bind_window;
}

// Its pieces of our own memory, checked; or the error found before any peer is involved.
std::optional<WcStatus> prepare(const QpCommon&, SendWqe&, Gather& pieces);
// Executes a WQE for which is_local(). False: its status says why.
bool execute_local(const QpCommon&, SendWqe&);

}  // namespace weir::rnic
