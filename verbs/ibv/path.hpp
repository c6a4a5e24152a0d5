// Which path leads to a destination: through shared memory to a process of our user on this host, or in
// packets to another user's, or to another host. The one place that decides it, from the destination's GID
// and the slot in its queue pair's number.
#pragma once

#include <infiniband/verbs.h>

#include <expected>
#include <optional>

#include "rnic/queue_pair/queue_pair.hpp"
#include "verbs/ibv/gid_table.hpp"
#include "verbs/progress/nic_process.hpp"

namespace weir::verbs {

enum class Reach : std::uint8_t {
  same_host,     // no GID at all, or an address of this network namespace
  another_user,  // the same, of a process of another user: packets, too, but not by the port
  packets,       // any other unicast address, for the services that packets carry
  nowhere
};
// By the address alone.
Reach reach_of(const ibv_ah_attr& to, rnic::QpType type);

// Where the queue pair of that number is that the path leads to. `process` is of another user's alone: the
// number of the process, which stays what it is now for as long as a queue pair is connected to it.
struct Way {
  Reach reach = Reach::same_host;
  std::uint64_t process = 0;
};
Way way_to(NicProcess& nic, const ibv_ah_attr& to, rnic::Qpn destination, rnic::QpType type);

// Whether packets go there from the address that the attributes name, and come back to us: opens the port,
// and looks for a route. Says on standard error what is in the way, once. 0, or an errno.
int open_way(NicProcess& nic, const ibv_ah_attr& to);

// The address of ours from which packets go to that group, and by whose interface they come: the one of that
// index, or without one the first that will do. nullopt: the group stays on this host, for the address is
// loopback or of the other family, or packets are switched off.
std::optional<GidEntry> carrier_of_group(const ibv_gid& group, std::optional<std::size_t> index);
// Whether packets of groups can go and come; says on standard error what is in the way, once.
bool open_for_group(NicProcess& nic);

// Neither loopback nor a group: an address that another host may reach.
bool is_unicast(const ibv_gid& gid);

// rnic::PacketRoute's `interface`.
std::uint32_t interface_towards(const ibv_gid& destination, const GidEntry& source);

// The largest path MTU that packets of the interface with that GID may have: its own MTU less the headers.
ibv_mtu mtu_of(const GidEntry& source);
// The port's active MTU: as `weir run --mtu` says, else that of its first address that other hosts reach.
// Where there is none, 4096.
ibv_mtu port_mtu();
// The most that a path MTU may be and a datagram within the host may carry: as `weir run --mtu` says, else
// 4096 whatever the interfaces carry, for there are no packets.
ibv_mtu most_mtu();

// A queue pair's path as its attributes say, PSNs included.
rnic::Path path_of(const ibv_qp_attr& attr, const Way& way);

class ManagementPort;
// Lives as long as the process.
ManagementPort* make_management_port(NicProcess& nic);

}  // namespace weir::verbs
