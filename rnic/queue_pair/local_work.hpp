// What a send WQE has to do with our own memory and our own table, whichever way it goes: under the send
// lock.
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

// Its pieces of our own memory, checked; or what is wrong with it before anybody else is asked.
std::optional<WcStatus> prepare(const QpCommon&, SendWqe&, Gather& pieces);
// One that is_local(). False: its status says why.
bool execute_local(const QpCommon&, SendWqe&);

}  // namespace weir::rnic
