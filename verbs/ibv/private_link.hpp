// The only interface between libibverbs.so.1 and librdmacm.so.1: the process's same-host link, which
// carries the CM's messages, and the log of `weir trace`. libibverbs.so.1 exports it under the
// version node WEIR_PRIVATE_1.
#pragma once

#include <cstdint>

#include "link/same_host.hpp"

// Attaches on first use. nullptr with errno on failure. Owned by libibverbs; lives until exit. A forked child
// gets its own.
extern "C" weir::link::SameHostLink* weir_same_host_link();

// The NIC's datagrams to the connection managers of other hosts. Each call makes a new port.
namespace weir::verbs {
class ManagementPort;
}
extern "C" weir::verbs::ManagementPort* weir_management_port();

// Whether this process is traced with a log; if so, adds a line about that queue pair (0: none yet).
extern "C" bool weir_trace_logs();
extern "C" void weir_trace_line(std::uint32_t qpn, const char* line);

// In path.cpp; `weir devices` looks it up by name. Describes what that address of ours reaches, and how. The
// text is for people and stays valid until the thread's next call.
union ibv_gid;
extern "C" const char* weir_reaches(const ibv_gid* own);

// In gid_table.cpp: the index of that GID in the table of each of our ports; -1: not an address of this host.
// librdmacm.so.1 uses it to look up an address without telling the program of it, so that the look-up does
// not open the port (datagram_reception.hpp).
extern "C" int weir_gid_index(const ibv_gid* gid);

// In multicast.cpp, for librdmacm.so.1: ibv_attach_mcast on the interface of our GID at that index.
struct ibv_qp;
extern "C" int weir_attach_group(ibv_qp* qp, const ibv_gid* group, int gid_index);

// In own_drops.cpp; rdma/packet_drops.hpp looks it up by name and does without it if it is missing. The
// packets that this process's NIC dropped (rnic::Dropped): names for metrics, which stay valid, and counts,
// both with room for `room`. Returns how many there are; 0: there is no NIC yet.
extern "C" int weir_own_drops(const char** names, std::uint64_t* counts, int room);

// In queue_pair.cpp; rdma/verbs/verbs_shim.cpp looks it up by name and does without it if it is missing.
extern "C" bool weir_peer_inside(ibv_qp* qp);

// In completion.cpp; verbs/look/waiting_calls.cpp asks whether the process may wait for completions: how many
// completion channels it has.
extern "C" unsigned weir_open_channels();

// In device.cpp; sockets/device.cpp looks it up by name. At its end the process tells its neighbours nothing
// and removes nothing, as if it were killed: its seccomp filter might kill it for the system calls.
extern "C" void weir_end_silently();
