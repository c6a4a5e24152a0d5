#include "rnic/same_host/access_refusal.hpp"

#include "rnic/memory/protection_table.hpp"

namespace weir::rnic {

AccessRefusal why_refused(const Peer& target, Qpn queue_pair, const RemoteAccess& wanted) {
  const QpContext& context = target.segment().qps[queue_pair.index()];
  if (!(context.access.load(std::memory_order_relaxed) & wanted.need))
    return AccessRefusal::queue_pair_rights;
  const TptEntry& region = target.tpt_entry(wanted.rkey);
  if (wanted.rkey == 0 || region.key.load(std::memory_order_seq_cst) != wanted.rkey)
    return AccessRefusal::no_such_key;
  if (region.pd != context.pd) return AccessRefusal::other_domain;
  if (!(region.access & wanted.need)) return AccessRefusal::region_rights;
  if (region.qpn != 0) {
    const auto& invalidated = target.segment().invalidated[(wanted.rkey >> 8) & (max_keys - 1)];
    if (region.qpn != queue_pair.value() || invalidated.load(std::memory_order_acquire) == wanted.rkey)
      return AccessRefusal::other_window;
  }
  return ProtectionTable::in_bounds(region, wanted.addr, wanted.length) ? AccessRefusal::none
                                                                        : AccessRefusal::bounds;
}

}  // namespace weir::rnic
