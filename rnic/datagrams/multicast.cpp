#include "rnic/datagrams/multicast.hpp"

#include <algorithm>

namespace weir::rnic {

bool is_group(const Gid& gid) {
  static constexpr std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (gid[0] == 0xff) return true;
  return std::equal(mapped.begin(), mapped.end(), gid.begin()) && gid[12] >> 4 == 0xe;
}

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

void MulticastGroups::append_attached(const Gid& gid, std::vector<std::uint32_t>& qp_indices) {
  const std::lock_guard lock(mutex_);
  for (const MulticastEntry& entry : attachments().ever_used()) {
    const std::uint32_t qp = entry.qp.load(std::memory_order_relaxed);
    if (qp != 0 && qp <= max_qps && entry.gid == gid) qp_indices.push_back(qp - 1);
  }
}

QpEntries<MulticastEntry> MulticastGroups::attachments() const {
  SegmentHeader& header = segment_.header();
  return {header.multicast, header.multicast_used};
}

}  // namespace weir::rnic
