// ibv_advise_mr(3): prefetch. The page faults of on-demand regions are taken in advance.
#include <cerrno>

#include "link/memory/fault_in.hpp"
#include "verbs/ibv/objects.hpp"

namespace weir::verbs {
namespace {

int prefetch(const rnic::ProtectionTable& table, std::uint32_t pd, const ibv_sge& range, link::Touch touch) {
  const rnic::TptEntry& entry = table.entry(range.lkey);
  if (range.lkey == 0 || entry.key.load() != range.lkey) return EFAULT;
  if (entry.pd != pd) return EPERM;
  if (!(entry.access & rnic::access::on_demand)) return EINVAL;
  if (!rnic::ProtectionTable::in_bounds(entry, range.addr, range.length)) return EFAULT;
  if (touch == link::Touch::write && !(entry.access & rnic::access::local_write)) return EPERM;
  void* const at = rnic::ProtectionTable::address(entry, range.addr);
  return link::fault_in(at, range.length, touch) ? 0 : EFAULT;
}

}  // namespace

// The advice is complete on return, so IBV_ADVISE_MR_FLAG_FLUSH makes no difference.
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* ranges,
              std::uint32_t count) {
  if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return ENOTSUP;
  if ((flags & ~unsigned{IBV_ADVISE_MR_FLAG_FLUSH}) || count == 0) return EINVAL;
  // "No fault" asks to translate only pages that are already present. Our only translations are the page
  // tables, so there is nothing to do.
  const auto touch = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ? link::Touch::write : link::Touch::read;
  for (std::uint32_t i = 0; i < count; ++i) {
    const ibv_sge range = {ranges[i].addr,
                           advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ? 0 : ranges[i].length,
                           ranges[i].lkey};
    if (const int error = prefetch(context_of(pd->context).adapter().table(), pd_of(pd).number, range, touch))
      return error;
  }
  return 0;
}

}  // namespace weir::verbs
