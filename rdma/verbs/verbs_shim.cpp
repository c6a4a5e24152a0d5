// Defines the verbs functions listed in verbs_calls.def as forwarders into the provider's libraries.
//
// They are hidden symbols: libraries in this process that use verbs themselves keep finding the real ones.
// Threading: bound once by load_provider() before any call; read-only afterwards.
#include "rdma/verbs/verbs_shim.hpp"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

// The header wraps these in macros.
#undef ibv_query_port
#undef ibv_reg_mr

namespace {

struct Bound {
#define WEIR_VERBS_CALL(library, result, name, parameters, arguments) result(*name) parameters = nullptr;
#include "rdma/verbs/verbs_calls.def"
#undef WEIR_VERBS_CALL
};
Bound bound;
// Of Weir's libibverbs.so.1 alone (verbs/ibv/private_link.hpp); nullptr elsewhere.
bool (*bound_peer_inside)(ibv_qp*) = nullptr;

}  // namespace

#pragma GCC visibility push(hidden)
extern "C" {
#define WEIR_VERBS_CALL(library, result, name, parameters, arguments) \
  result name parameters { return bound.name arguments; }
#include "rdma/verbs/verbs_calls.def"
#undef WEIR_VERBS_CALL
}
#pragma GCC visibility pop

namespace weir::rdma {

std::string bind_verbs(void* ibverbs, void* rdmacm) {
  std::string missing;
#define WEIR_VERBS_CALL(library, result, name, parameters, arguments)         \
  bound.name = reinterpret_cast<result(*) parameters>(dlsym(library, #name)); \
  if (bound.name == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(#name);
#include "rdma/verbs/verbs_calls.def"
#undef WEIR_VERBS_CALL
  bound_peer_inside = reinterpret_cast<bool (*)(ibv_qp*)>(dlsym(ibverbs, "weir_peer_inside"));
  return missing;
}

bool peer_inside(ibv_qp* qp) {
  return qp != nullptr && bound_peer_inside != nullptr && bound_peer_inside(qp);
}

}  // namespace weir::rdma
