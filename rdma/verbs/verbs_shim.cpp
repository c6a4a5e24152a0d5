// Defines the verbs functions of verbs_calls.def as forwarders into the provider's libraries.
//
// They are hidden symbols, so other libraries in this process that use verbs still find the real ones.
// Threading: load_provider() binds them once before any call; after that they are only read.
#include "rdma/verbs/verbs_shim.hpp"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>

#include "rdma/packet_drops.hpp"

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
int (*bound_own_drops)(const char**, std::uint64_t*, int) = nullptr;

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
  bound_own_drops =
      reinterpret_cast<int (*)(const char**, std::uint64_t*, int)>(dlsym(ibverbs, "weir_own_drops"));
  return missing;
}

bool on_software_nic() { return bound_peer_inside != nullptr; }

bool peer_inside(ibv_qp* qp) {
  return qp != nullptr && bound_peer_inside != nullptr && bound_peer_inside(qp);
}

std::vector<PacketDrops> packet_drops() {
  constexpr int room = 32;
  std::array<const char*, room> names{};
  std::array<std::uint64_t, room> counts{};
  if (bound_own_drops == nullptr) return {};
  const int known = bound_own_drops(names.data(), counts.data(), room);
  std::vector<PacketDrops> drops;
  for (std::size_t i = 0; i < static_cast<std::size_t>(known); ++i) drops.push_back({names[i], counts[i]});
  return drops;
}

}  // namespace weir::rdma
