// An identifier's queue pair: made with what it needs where the application gave none, and moved through its
// states as the connection comes and goes (IBTA 12.9.7: the attributes each transition takes from the CM).
//
// Called on the application's threads only: ibv_modify_qp may wait for the other process. Functions return 0
// or an errno.
#pragma once

#include "verbs/cm/identifier.hpp"

namespace weir::cm {

// The attributes for attr.qp_state (INIT, RTR or RTS), as rdma_init_qp_attr gives them.
int attributes_for(const Id& id, ibv_qp_attr& attr, int& mask);

int create_queue_pair(Id& id, Devices& devices, ibv_qp_init_attr_ex& attr);
void destroy_queue_pair(Id& id);
int create_receive_queue(Id& id, Devices& devices, ibv_srq_init_attr_ex& attr);
void destroy_receive_queue(Id& id);

// INIT with the connection's access flags, RTR, RTS. Nothing to do without a queue pair.
int make_ready(Id& id);
void make_error(Id& id);

}  // namespace weir::cm
