// The addresses of a packet: turns address vectors into Ethernet, IP and UDP headers.
#pragma once

#include <infiniband/verbs.h>

#include "rnic/tracer.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {

std::uint32_t mtu_bytes(ibv_mtu);

// From a connected queue pair's address vector; loopback if it names no GID.
wire::Route route_of(const ibv_ah_attr&, rnic::Qpn own);
// From the GRH that an address handle prepared (40 bytes; an IPv4 header fills the last
// 20); nullptr: loopback.
wire::Route route_of(const std::byte* grh, rnic::Qpn own);
// For a packet that a socket sent or received. A socket does not see the IPv4 ID of a received packet, so it
// is derived from the packet's ICRC.
wire::Route route_of(const rnic::WirePacket&);
wire::Route reversed(const wire::Route&);

}  // namespace weir::verbs
