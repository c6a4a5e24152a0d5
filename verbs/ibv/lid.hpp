// LIDs, which Ethernet does not have. Ours is the end of an address, so that what programs exchange that are
// given no GID (ibv_rc_pingpong without -g) leads to the host that it came from.
//
// Threading: any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace weir::verbs {

// The last two bytes of the first IPv4 address that other hosts reach; if there is none, of 127.0.0.1.
std::uint16_t port_lid();

// An address that is only a LID, as one with GIDs: the host's whose IPv4 address is ours but for the last two
// bytes. Addresses with a GRH and LID 0 stay what they are, and so does every address where we have no IPv4
// address; without a GRH they mean this host.
ibv_ah_attr with_grh(const ibv_ah_attr& to);

}  // namespace weir::verbs
