// Defines the verbs functions of verbs_calls.def as forwarders into the provider's libraries.
//
// They are hidden symbols, so other libraries in this process that use verbs still find the real ones.
// Threading: load_provider() binds them once before any call; after that they are only read.
#include "rdma/verbs/verbs_shim.hpp"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

// The header defines macros with these names.
#undef ibv_query_port
#undef ibv_reg_mr

namespace {

struct Bound {
#define WEIR_VERBS_CALL(library, result, name, parameters, arguments) result(*name) parameters = nullptr;
#include "rdma/verbs/verbs_calls.def"
#undef WEIR_VERBS_CALL
};
Bound bound;
// Only Weir's libibverbs.so.1 has it (verbs/ibv/private_link.hpp); otherwise nullptr.
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

bool on_software_nic() { return bound_peer_inside != nullptr; }

bool peer_inside(ibv_qp* qp) {
  return qp != nullptr && bound_peer_inside != nullptr && bound_peer_inside(qp);
}

}  // namespace weir::rdma
