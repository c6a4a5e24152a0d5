// Decides which path leads to a destination: shared memory for a process of our user on this host, packets
// for another user's process or another host. Only this file decides it, from the destination's GID and the
// slot in the queue pair's number.
#pragma once

#include <infiniband/verbs.h>

#include <expected>
#include <optional>

#include "rnic/queue_pair/queue_pair.hpp"
#include "verbs/ibv/gid_table.hpp"
#include "verbs/nic/nic_process.hpp"

namespace weir::verbs {

enum class Reach : std::uint8_t {
  same_host,     // no GID at all, or an address of this network namespace (unless `weir run --packets`)
  another_user,  // likewise, but the process is another user's: packets that bypass the port
  packets,       // any other unicast address, for the transport services that packets carry
  nowhere
};
// Judges the address alone, which has a GRH or means this host.
Reach reach_of(const ibv_ah_attr& to, rnic::QpType type);

// Where the path leads. `process` is set only for another user's process: its number, which does not change
// while a queue pair is connected to it.
struct Way {
  Reach reach = Reach::same_host;
  std::uint64_t process = 0;
  ibv_ah_attr to{};  // from with_grh() (lid.hpp)
};
Way way_to(NicProcess& nic, const ibv_ah_attr& destination_address, rnic::Qpn destination, rnic::QpType type);

// Checks that packets can go there from the address that the attributes name, and come back: opens the port
// and looks up a route. Prints once on standard error what prevents it. Returns 0 or an errno.
int open_way(NicProcess& nic, const ibv_ah_attr& to);

// Our address from which packets to that group leave; its interface receives the group. It is the entry at
// `index`, or without an index the first suitable one. nullopt: the group stays on this host, because the
// address is loopback or of the other family, or packets are switched off.
std::optional<GidEntry> carrier_of_group(const ibv_gid& group, std::optional<std::size_t> index);
// Whether group packets can be sent and received; prints once on standard error what prevents it.
bool open_for_group(NicProcess& nic);

// The value of rnic::PacketRoute::interface.
std::uint32_t interface_towards(const ibv_gid& destination, const GidEntry& source);

// The largest path MTU for packets through the interface of that GID: its own MTU less the headers.
ibv_mtu mtu_of(const GidEntry& source);
// The port's active MTU: from `weir run --mtu`, else that of the first address that other
// hosts reach, else 4096.
ibv_mtu port_mtu();
// The largest path MTU, and the largest datagram within the host: from `weir run --mtu`, else 4096. The
// interfaces do not limit it, because no packets are involved.
ibv_mtu most_mtu();

// A queue pair's path from its attributes, including the PSNs.
rnic::Path path_of(const ibv_qp_attr& attr, const Way& way);

class ManagementPort;
// Lives as long as the process.
ManagementPort* make_management_port(NicProcess& nic);

}  // namespace weir::verbs
