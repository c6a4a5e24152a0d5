// When the UDP port opens for datagrams that strangers send.
//
// A datagram queue pair takes them of anybody, from the moment it is ready, and does nothing by which we
// could know whether they come from this host or from another. But whoever sends there from another host must
// have been told an address of ours, and a program learns those from the device. So the port opens when both
// have happened, in either order: a queue pair takes datagrams, and the program has asked for an address that
// others reach.
//
// Threading: any thread.
#pragma once

#include <infiniband/verbs.h>

#include "verbs/progress/nic_process.hpp"

namespace weir::verbs {

// A datagram queue pair of this process is ready to receive.
void datagrams_are_taken(NicProcess& nic);
// The program has got that entry of the GID table; not called for what our own libraries look up.
void address_is_known(const ibv_gid& gid);

}  // namespace weir::verbs
