// The program by which the kernel turns strangers' packets away from a process's socket on the RoCEv2 port,
// before they take room in its receive buffer and wake the process.
//
// All peers and all strangers share that buffer: without a filter, whoever fills it makes the peers' packets
// drop. A classic BPF program needs no privilege. It lets through
//   - what comes from 127.0.0.0/8: only this host sends that;
//   - packets to queue pairs of this process from the addresses of its peers;
//   - datagrams (UD) from anywhere, if this process takes any: their Q_Keys are checked later;
//   - packets to other processes of this host that are known, which get them passed on; of those to a
//     process not known all that this host sends, and of others' one in `sampled`, so that a process is
//     noticed that began a moment ago: a datagram that its peer sends at once is not repeated;
//   - messages to queue pair 1 that are long enough, but only some of strangers' that send too many
//     (stranger_cut.hpp), and all of multicast groups.
// A batch that the kernel hands over whole (UDP_GRO) has one source, and is judged by its first packet.
//
// It is no protection from those that forge the source address of a peer. Pure.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <vector>

#include "link/same_host.hpp"
#include "link/udp/stranger_cut.hpp"
#include "link/udp/udp_route.hpp"

namespace weir::link {

struct ArrivalRules {
  Slot own = 0;
  unsigned slot_shift = 0;  // of a slot in a queue pair number
  bool datagrams = false;
  unsigned loopback = 0;  // the interface that this host's own packets come from; 0: unknown
  std::span<const Slot> others = {};
  std::span<const IpAddress> peers = {};  // more than max_filtered_peers: packets come from anywhere
  CutSources cut = {};
};

inline constexpr std::size_t max_filtered_peers = 128;
inline constexpr std::uint32_t sampled = 16;

std::vector<sock_filter> arrival_filter(const ArrivalRules& rules);

}  // namespace weir::link
