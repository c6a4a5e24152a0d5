// Raw packet queue pairs: Ethernet frames, as the application made them, between processes of this host.
//
// There is no wire. A frame goes to the queue pairs whose steering rules it matches, in every process, the
// sender's own included; of rules of different priority only those of the first that match count. It travels
// as a datagram does (datagram.cpp), without a GRH in front. One that no rule matches, or that finds no
// receive posted, is lost, as on Ethernet. A queue pair that spreads its frames (receive_side_scaling.hpp)
// hands each to one of its work queues.
#pragma once

#include "rnic/queue_pair/qp_common.hpp"
#include "rnic/same_host/responder.hpp"

namespace weir::rnic {

// Under the send lock. `dial`: of the frame that waits for a process to be connected.
Outcome execute_frame(const QpCommon&, SendWqe&, const Gather&, HostPort::Ticket& dial);

}  // namespace weir::rnic
