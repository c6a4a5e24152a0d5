#include "rnic/multicast.hpp"

namespace weir::rnic {

MulticastEntry* MulticastGroups::find(std::uint32_t qp_index, const Gid& gid) {
  for (MulticastEntry& entry : attachments().ever_used())
    if (entry.qp.load(std::memory_order_relaxed) == qp_index + 1 && entry.gid == gid) return &entry;
  return nullptr;
}

MulticastGroups::Attached MulticastGroups::attach(std::uint32_t qp_index, const Gid& gid) {
  const std::lock_guard lock(mutex_);
  if (find(qp_index, gid) != nullptr) return Attached::ok;
  const auto place = attachments().add(qp_index, [&](MulticastEntry& entry) { entry.gid = gid; });
  return place ? Attached::ok : Attached::full;
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
  attachments().forget(qp_index);
}

QpEntries<MulticastEntry> MulticastGroups::attachments() const {
  SegmentHeader& header = segment_.header();
  return {header.multicast, header.multicast_used};
}

}  // namespace weir::rnic
