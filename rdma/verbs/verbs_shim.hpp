// Binds the ibv_* and rdma_* forwarders (verbs_shim.cpp) to the two libraries that the provider opened.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace weir::rdma {

// Handles as dlopen gave them. Returns the names of the functions that the libraries lack; empty: all are
// bound.
std::string bind_verbs(void* ibverbs, void* rdmacm);

// The libraries are Weir's.
bool on_software_nic();

// Whether destroying this queue pair would wait for a peer. Only on Weir's NIC, where the peer's process does
// the work, and may be stopped in the middle of it; a NIC of its own never waits for anybody.
bool peer_inside(ibv_qp* qp);

}  // namespace weir::rdma
