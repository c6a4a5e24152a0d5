// Binds the ibv_* and rdma_* forwarders (verbs_shim.cpp) to the two libraries that the provider opened.
#pragma once

#include <string>

namespace weir::rdma {

// Handles as dlopen gave them. Returns the names of the functions that the libraries lack; empty: all are
// bound.
std::string bind_verbs(void* ibverbs, void* rdmacm);

}  // namespace weir::rdma
