// Memory regions.
#include <cerrno>
#include <cstdio>

#include "link/not_cancelled.hpp"
#include "verbs/faulty/calls.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/trace/log_lines.hpp"
#include "verbs/trace/tracer.hpp"

namespace weir::verbs {
namespace {

// The rights that the NIC keeps. It uses the page tables, so the size of the pages does not matter.
constexpr unsigned rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                            IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                            IBV_ACCESS_ON_DEMAND;
constexpr unsigned known_access = rights | IBV_ACCESS_HUGETLB;

// IBA 10.6.3.1: remote write and atomic rights need local write.
bool access_valid(unsigned access) {
  const unsigned mandatory = access & ~static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
  if (mandatory & ~known_access) return false;
  const bool writes = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  return !writes || (access & IBV_ACCESS_LOCAL_WRITE);
}

struct MrInitAttributes {  // ibv_mr_init_attr
  std::size_t length;
  int access;
  std::uint64_t comp_mask;
  std::uint64_t iova;
  void* addr;
  int fd;
  std::uint64_t fd_offset;
  void* dma_handle;
};

// Only a traced process pays for the text.
void trace_registration(const ibv_mr& region, std::uint64_t iova, unsigned access) {
  if (context_of(region.context).adapter().tracer() != nullptr)
    trace_line(region.context->device->name, registration_line(region, iova, access));
}
void trace_deregistration(const ibv_mr& region) {
  if (context_of(region.context).adapter().tracer() == nullptr) return;
  char text[32];
  std::snprintf(text, sizeof text, "deregister key 0x%x", region.lkey);
  trace_line(region.context->device->name, text);
}

}  // namespace

ibv_mr* register_region(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access) {
  if (!access_valid(access)) {
    errno =
        (access & ~static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE) & ~known_access) ? EOPNOTSUPP : EINVAL;
    return nullptr;
  }
  if (is_refused(*context_of(pd->context).nic, faults::Call::reg_mr)) return nullptr;
  const link::NotCancelled whole;
  const auto key =
      context_of(pd->context)
          .nic->register_memory(reinterpret_cast<std::uint64_t>(addr), length,
                                access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access & rights, pd_of(pd).number);
  if (!key) {
    errno = static_cast<int>(key.error().code);
    return nullptr;
  }
  auto* mr = new Mr{};
  mr->mr = {pd->context, pd, addr, length, *key >> 8, *key, *key};
  mr->access = access;
  pd_of(pd).users.fetch_add(1);
  trace_registration(mr->mr, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access);
  return &mr->mr;
}

namespace {

int change_region(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length, int access) {
  const int known = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  if ((flags & ~known) != 0 || flags == 0) return IBV_REREG_MR_ERR_INPUT;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (addr == nullptr || length == 0))
    return IBV_REREG_MR_ERR_INPUT;
  if (access != 0 && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) return IBV_REREG_MR_ERR_INPUT;
  auto& region = *reinterpret_cast<Mr*>(mr);
  ibv_pd* const new_pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : mr->pd;
  const auto new_access = flags & IBV_REREG_MR_CHANGE_ACCESS ? static_cast<unsigned>(access) : region.access;
  if (context_of(mr->context).adapter().windows().in_use(mr->lkey)) return IBV_REREG_MR_ERR_INPUT;
  // The null region, regions in device memory and imported regions cannot be changed.
  if (region.mr.addr == nullptr) return IBV_REREG_MR_ERR_INPUT;
  if (new_pd == nullptr || !access_valid(new_access)) return IBV_REREG_MR_ERR_INPUT;
  NicProcess& nic = *context_of(mr->context).nic;
  if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
    const auto start = reinterpret_cast<std::uint64_t>(addr);
    const auto key = nic.register_memory(start, length, start, new_access & rights, pd_of(new_pd).number);
    if (!key) {
      errno = static_cast<int>(key.error().code);
      return IBV_REREG_MR_ERR_CMD;
    }
    trace_deregistration(*mr);
    nic.deregister_memory(mr->lkey);
    mr->addr = addr;
    mr->length = length;
    mr->lkey = mr->rkey = *key;
    trace_registration(*mr, start, new_access);
  } else {
    nic.adapter().table().update(mr->lkey, new_access & rights, pd_of(new_pd).number);
    nic.adapter().drain_initiators(mr->lkey);
  }
  pd_of(new_pd).users.fetch_add(1);
  drop_user(pd_of(mr->pd));
  mr->pd = new_pd;
  region.access = new_access;
  return 0;
}

}  // namespace
}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, size_t length, int access) {
  return register_region(pd, addr, length, reinterpret_cast<std::uint64_t>(addr),
                         static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, size_t length, uint64_t iova, int access) {
  return register_region(pd, addr, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned int access) {
  return register_region(pd, addr, length, iova, access);
}

// rdma-core 59 and later; their header declares the struct.
ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, void* of_program) {
  const auto* const attributes = static_cast<const MrInitAttributes*>(of_program);
  constexpr std::uint64_t iova = 1, addr = 2;  // other bits: a dma-buf's descriptor, a DMA handle
  if (!(attributes->comp_mask & addr) || (attributes->comp_mask & ~(iova | addr))) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const std::uint64_t at =
      attributes->comp_mask & iova ? attributes->iova : reinterpret_cast<std::uint64_t>(attributes->addr);
  return register_region(pd, attributes->addr, attributes->length, at,
                         static_cast<unsigned>(attributes->access));
}

// DMA handles are hints for a PCIe device's caches, and this device has none.
void* ibv_alloc_dmah(ibv_context*, void*) {
  errno = EOPNOTSUPP;
  return nullptr;
}
int ibv_dealloc_dmah(void*) { return EOPNOTSUPP; }

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  errno = EOPNOTSUPP;  // device memory has no address in this process
  return nullptr;
}

int ibv_dereg_mr(ibv_mr* mr) {
  if (context_of(mr->context).adapter().windows().in_use(mr->lkey)) return EBUSY;
  drop_user(pd_of(mr->pd));
  trace_deregistration(*mr);
  context_of(mr->context).nic->deregister_memory(mr->lkey);
  if (auto* users = reinterpret_cast<Mr*>(mr)->memory_users) users->fetch_sub(1);
  delete reinterpret_cast<Mr*>(mr);
  return 0;
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length, int access) {
  const int outcome = change_region(mr, flags, pd, addr, length, access);
  if (outcome == IBV_REREG_MR_ERR_INPUT) errno = EINVAL;
  return outcome;
}

// Nothing is pinned: the NIC copies through the page tables that the owning process has at that
// moment, so fork needs no care.
int ibv_fork_init() { return 0; }
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }
int ibv_dontfork_range(void*, size_t) { return 0; }
int ibv_dofork_range(void*, size_t) { return 0; }

}  // extern "C"
