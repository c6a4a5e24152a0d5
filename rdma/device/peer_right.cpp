#include "rdma/device/peer_right.hpp"

#include <sys/random.h>

#include <cerrno>
#include <utility>

namespace weir::rdma {
namespace {

// With the page offset of `memory`, as devices want it, and below 2^47, as user space has it on every
// machine. Secret, hence from the kernel and not from the caller.
Result<std::uint64_t> random_address(std::span<const std::byte> memory) {
  constexpr std::uint64_t page_mask = 4095, pages = std::uint64_t{1} << 35;
  std::uint64_t drawn = 0;
  if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
    return fail_os(Errc::device_error, "cannot draw a random address", errno);
  const std::uint64_t page = 1 + drawn % (pages - 1);  // not the first, where null pointers lead
  return page << 12 | (reinterpret_cast<std::uintptr_t>(memory.data()) & page_mask);
}

}  // namespace

Result<PeerRight> PeerRight::enroll(const Device& device, std::span<std::byte> memory, Access access) {
  const Result<std::uint64_t> address = random_address(memory);
  if (!address) return std::unexpected(address.error());
  Result<MemoryRegion> region = MemoryRegion::enroll_at(device.pd(), memory, *address, access);
  if (!region) return std::unexpected(region.error());
  PeerRight right;
  right.address_ = *address;
  right.rkey_ = region->rkey();
  right.objects_ = std::make_unique<Objects>(Objects{std::move(*region), std::nullopt});
  return right;
}

Result<PeerRight> PeerRight::for_all_told(const Device& device, std::span<std::byte> memory) {
  return enroll(device, memory, Access::remote_read);
}

Result<PeerRight> PeerRight::make(const Device& device, std::span<std::byte> memory, Access access) {
  const bool windows = (device.limits().device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0;
  if (!windows) return enroll(device, memory, access);
  Result<PeerRight> right = enroll(device, memory, Access::through_windows);
  if (!right) return right;
  Result<MemoryWindow> window = MemoryWindow::allocate(device.pd());
  if (!window) return std::unexpected(window.error());
  right->rkey_ = ibv_inc_rkey(window->get()->rkey);
  right->objects_->window = std::move(*window);
  right->bytes_ = memory.size();
  right->access_ = access == Access::remote_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  return right;
}

ibv_send_wr PeerRight::bind() {
  bound_ = true;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw.mw = objects_->window->get();
  wr.bind_mw.rkey = rkey_;
  wr.bind_mw.bind_info = {objects_->region.get(), address_, bytes_, access_};
  return wr;
}

}  // namespace weir::rdma
