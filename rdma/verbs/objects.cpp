#include "rdma/verbs/objects.hpp"

#include <fcntl.h>

#include <cerrno>
#include <string>

namespace weir::rdma {

Result<ProtectionDomain> ProtectionDomain::allocate(ibv_context* device) {
  if (ibv_pd* pd = ibv_alloc_pd(device); pd != nullptr) return ProtectionDomain(pd);
  return fail_os(Errc::device_error, "cannot allocate a protection domain", errno);
}

Result<MemoryRegion> MemoryRegion::enroll(const ProtectionDomain& pd, std::span<std::byte> memory,
                                          Access access) {
  return enroll_at(pd, memory, reinterpret_cast<std::uintptr_t>(memory.data()), access);
}

Result<MemoryRegion> MemoryRegion::enroll_at(const ProtectionDomain& pd, std::span<std::byte> memory,
                                             std::uint64_t address, Access access) {
  unsigned flags = IBV_ACCESS_LOCAL_WRITE;
  if (access == Access::remote_write) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (access == Access::remote_read) flags |= IBV_ACCESS_REMOTE_READ;
  if (access == Access::through_windows) flags |= IBV_ACCESS_MW_BIND;
  if (ibv_mr* mr = ibv_reg_mr_iova2(pd.get(), memory.data(), memory.size(), address, flags); mr != nullptr)
    return MemoryRegion(mr);
  const int why = errno;
  // The usual cause on real devices: registration pins pages against RLIMIT_MEMLOCK.
  return fail_os(why == ENOMEM ? Errc::memory_limit : Errc::device_error,
                 "cannot register " + std::to_string(memory.size()) + " bytes with the device" +
                     (why == ENOMEM ? " (raise `ulimit -l` or use smaller buffers)" : ""),
                 why);
}

Result<MemoryWindow> MemoryWindow::allocate(const ProtectionDomain& pd) {
  if (ibv_mw* mw = ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2); mw != nullptr) return MemoryWindow(mw);
  return fail_os(errno == ENOMEM ? Errc::memory_limit : Errc::device_error,
                 "cannot allocate a memory window of type 2", errno);
}

Result<MemoryRegion> MemoryRegion::enroll_everything(const ProtectionDomain& pd) {
  ibv_device_attr_ex device{};
  if (ibv_query_device_ex(pd.get()->context, nullptr, &device) == 0 &&
      (device.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT) != 0 &&
      (device.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_WRITE) != 0) {
    const int on_demand = IBV_ACCESS_ON_DEMAND;
    if (ibv_mr* mr = ibv_reg_mr(pd.get(), nullptr, SIZE_MAX, on_demand); mr != nullptr)
      return MemoryRegion(mr);
  }
  return fail(Errc::device_error, "the device does not page the memory it reads on demand");
}

Result<CompletionChannel> CompletionChannel::create(ibv_context* device) {
  ibv_comp_channel* raw = ibv_create_comp_channel(device);
  if (raw == nullptr)
    return fail_os(Errc::device_error, "cannot create a completion channel (out of file descriptors?)",
                   errno);
  CompletionChannel channel(raw);
  const int flags = fcntl(raw->fd, F_GETFL);
  if (flags < 0 || fcntl(raw->fd, F_SETFL, flags | O_NONBLOCK) < 0)
    return fail_os(Errc::device_error, "cannot make the completion channel non-blocking", errno);
  return channel;
}

void CompletionChannel::take_event() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
}

Result<SharedReceiveQueue> SharedReceiveQueue::create(const ProtectionDomain& pd, std::uint32_t depth) {
  ibv_srq_init_attr attributes{.srq_context = nullptr,
                               .attr = {.max_wr = depth, .max_sge = 1, .srq_limit = 0}};
  if (ibv_srq* srq = ibv_create_srq(pd.get(), &attributes); srq != nullptr) return SharedReceiveQueue(srq);
  return fail_os(Errc::device_error,
                 "cannot create a shared receive queue of " + std::to_string(depth) + " entries", errno);
}

Result<CompletionQueue> CompletionQueue::create(ibv_context* device, int entries,
                                                const CompletionChannel& channel, int vector) {
  const int vectors = device->num_comp_vectors > 0 ? device->num_comp_vectors : 1;
  ibv_cq* cq = ibv_create_cq(device, entries, nullptr, channel.get(), vector % vectors);
  if (cq != nullptr) return CompletionQueue(cq);
  return fail_os(Errc::device_error,
                 "cannot create a completion queue of " + std::to_string(entries) + " entries", errno);
}

}  // namespace weir::rdma
