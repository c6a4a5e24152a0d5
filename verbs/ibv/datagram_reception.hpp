// Decides when to open the UDP port for datagrams from other hosts.
//
// A datagram queue pair accepts datagrams from anybody once it is ready. Nothing that it does shows
// whether they come from this host or from another. But a sender on another host must know an address
// of ours, and a program learns our addresses from the device. So the port opens once both have
// happened, in either order: a queue pair is ready for datagrams, and the program has asked for an
// address that other hosts can reach.
//
// Threading: any thread.
#pragma once

#include <infiniband/verbs.h>

#include "verbs/nic/nic_process.hpp"

namespace weir::verbs {

// A datagram queue pair of this process is ready to receive.
void datagrams_are_taken(NicProcess& nic);
// The program has read that entry of the GID table. Look-ups by our own libraries do not call this.
void address_is_known(const ibv_gid& gid);

}  // namespace weir::verbs
