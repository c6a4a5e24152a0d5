// The addresses that packets would carry: from address vectors to Ethernet, IP and UDP.
#pragma once

#include <infiniband/verbs.h>

#include "rnic/tracer.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {

std::uint32_t mtu_bytes(ibv_mtu);

// From a connected queue pair's address vector; loopback where it names no GID.
wire::Route route_of(const ibv_ah_attr&, rnic::Qpn own);
// From the GRH that an address handle prepared (40 bytes; an IPv4 header stands in the last 20); nullptr:
// loopback.
wire::Route route_of(const std::byte* grh, rnic::Qpn own);
// Of a packet that a socket sent or took. The IPv4 ID, which a socket does not see of what it takes, is the
// one that the packet's ICRC says.
wire::Route route_of(const rnic::WirePacket&);
wire::Route reversed(const wire::Route&);

}  // namespace weir::verbs
