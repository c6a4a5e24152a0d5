// Calls that fail on purpose, and faults that begin by themselves (`weir run --faults`): the part of faults/
// that programs see without any packet.
//
// Calls through a context's table are replaced there, so they cost nothing without faults; exported functions
// ask refusal(), which without faults tests a null pointer.
#pragma once

#include <infiniband/verbs.h>

#include "verbs/nic/nic_process.hpp"

namespace weir::verbs {

// 0, or the errno that this call fails with. `qpn` 0: it is about no queue pair.
int refusal(NicProcess& nic, faults::Call call, std::uint32_t qpn = 0);
// For functions that return a pointer: whether it is refused, with errno set.
bool is_refused(NicProcess& nic, faults::Call call);

// What faults do to a completion that was taken. There are faults.
void judge_completion(NicProcess& nic, ibv_wc& completion);
// Puts an ibv_wr_complete that fails in front of that of a queue pair, if a fault is about it.
void put_faulty_calls_in_front(ibv_qp_ex& calls, const FaultyDevice& faults);

// Puts calls that fail in front of those of a context that some fault is about. All contexts of a process
// have the same calls.
void put_faulty_calls_in_front(ibv_context_ops& calls, const FaultyDevice& faults);

// Arms the faults that begin by themselves. Once for each NIC that has faults. `deliver` queues an event of
// the port for the program.
void schedule_faults(NicProcess& nic, void (*deliver)(ibv_event_type));
// Whether such a fault has taken the port down, or this address from it.
bool port_is_down(NicProcess& nic);
bool gid_is_gone(std::size_t index);

}  // namespace weir::verbs
