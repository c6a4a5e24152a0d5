// The one seam between libibverbs.so.1 and librdmacm.so.1: the process's same-host link, which carries the
// CM's messages, and the log of `weir trace`. Exported from libibverbs.so.1 under the version node
// WEIR_PRIVATE_1.
#pragma once

#include <cstdint>

#include "link/same_host.hpp"

// Attaches on first use. nullptr with errno on failure. Owned by libibverbs; lives until exit. A forked child
// gets its own.
extern "C" weir::link::SameHostLink* weir_same_host_link();

// The NIC's datagrams to other hosts' connection managers; as the link, but a new one for each call.
namespace weir::verbs {
class ManagementPort;
}
extern "C" weir::verbs::ManagementPort* weir_management_port();

// Whether this process is traced with a log; then: a line in it about that queue pair (0: none yet).
extern "C" bool weir_trace_logs();
extern "C" void weir_trace_line(std::uint32_t qpn, const char* line);

// In path.cpp; `weir devices` asks for it by its name: what is reached from that address of ours, and how. A
// text for people, valid until the thread's next call.
union ibv_gid;
extern "C" const char* weir_reaches(const ibv_gid* own);

// In gid_table.cpp: where that GID stands in the table of each of our ports, -1: it is no address of this
// host. For librdmacm.so.1, which tells no program of the address, as asking for it would
// (datagram_reception.hpp).
extern "C" int weir_gid_index(const ibv_gid* gid);

// In multicast.cpp, for librdmacm.so.1: ibv_attach_mcast, by the interface of that GID of ours.
struct ibv_qp;
extern "C" int weir_attach_group(ibv_qp* qp, const ibv_gid* group, int gid_index);

// In queue_pair.cpp; rdma/verbs/verbs_shim.cpp asks for it by its name, and does without where there is none.
extern "C" bool weir_peer_inside(ibv_qp* qp);
