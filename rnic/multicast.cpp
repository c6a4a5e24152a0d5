#include "rnic/multicast.hpp"

namespace weir::rnic {

MulticastEntry* MulticastGroups::find(std::uint32_t qp_index, const Gid& gid) {
  SegmentHeader& header = segment_.header();
  const std::uint32_t used = header.multicast_used.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) {
    MulticastEntry& entry = header.multicast[i];
    if (entry.qp.load(std::memory_order_relaxed) == qp_index + 1 && entry.gid == gid) return &entry;
  }
  return nullptr;
}

MulticastGroups::Attached MulticastGroups::attach(std::uint32_t qp_index, const Gid& gid) {
  const std::lock_guard lock(mutex_);
  if (find(qp_index, gid) != nullptr) return Attached::ok;
  SegmentHeader& header = segment_.header();
  std::uint32_t used = header.multicast_used.load(std::memory_order_relaxed);
  std::uint32_t i = 0;
  while (i < used && header.multicast[i].qp.load(std::memory_order_relaxed) != 0) ++i;
  if (i == max_multicast_attachments) return Attached::full;
  header.multicast[i].gid = gid;
  // release: a sender that sees the queue pair must see its group.
  header.multicast[i].qp.store(qp_index + 1, std::memory_order_release);
  if (i == used) header.multicast_used.store(used + 1, std::memory_order_release);
  return Attached::ok;
}

bool MulticastGroups::detach(std::uint32_t qp_index, const Gid& gid) {
  const std::lock_guard lock(mutex_);
  MulticastEntry* entry = find(qp_index, gid);
  if (entry == nullptr) return false;
  entry->qp.store(0, std::memory_order_release);
  return true;
}

void MulticastGroups::forget(std::uint32_t qp_index) {
  const std::lock_guard lock(mutex_);
  SegmentHeader& header = segment_.header();
  const std::uint32_t used = header.multicast_used.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i)
    if (header.multicast[i].qp.load(std::memory_order_relaxed) == qp_index + 1)
      header.multicast[i].qp.store(0, std::memory_order_release);
}

}  // namespace weir::rnic
