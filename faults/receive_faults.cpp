#include "faults/receive_faults.hpp"

#include <algorithm>
#include <utility>

namespace weir::faults {

ReceiveFaults::ReceiveFaults(Plan plan, std::size_t remembered)
    : plan_(std::move(plan)), remembered_(remembered), tallies_(plan_.faults.size()) {}

bool ReceiveFaults::any() const {
  return std::ranges::any_of(plan_.faults, [](const Fault& fault) { return fault.act == Act::rnr; });
}

bool ReceiveFaults::is_in_force(std::size_t index, std::uint64_t qp, std::uint64_t now_ns) const {
  const Fault& fault = plan_.faults[index];
  const Where& where = fault.where;
  if (fault.act != Act::rnr || (where.qp && !where.qp->has(qp))) return false;
  if (where.times && tallies_[index].fired >= *where.times) return false;
  return now_ns >= where.from_ns.value_or(0) && now_ns < where.until_ns.value_or(for_ever);
}

std::optional<std::uint64_t> ReceiveFaults::next(std::uint64_t qp, std::uint64_t message,
                                                 std::uint64_t now_ns) const {
  std::optional<std::uint64_t> first;
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    if (!is_in_force(i, qp, now_ns)) continue;
    const Range nth = plan_.faults[i].where.nth.value_or(Range{1, for_ever});
    if (message <= nth.last) first = std::min(first.value_or(for_ever), std::max(message, nth.first));
  }
  return first;
}

std::uint64_t ReceiveFaults::refused(std::uint64_t qp, std::uint64_t message, std::uint64_t now_ns) {
  std::uint64_t found_at_ns = now_ns;
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const Fault& fault = plan_.faults[i];
    const Where& where = fault.where;
    if (!is_in_force(i, qp, now_ns) || (where.nth && !where.nth->has(message))) continue;
    Tally& tally = tallies_[i];
    ++tally.met;
    ++tally.fired;
    if (tally.firings.size() < remembered_) tally.firings.push_back({now_ns, qp, message});
    const std::uint64_t late = fault.amount != 0 ? now_ns + fault.amount : for_ever;
    found_at_ns = std::max(found_at_ns, std::min(late, where.until_ns.value_or(for_ever)));
  }
  return found_at_ns;
}

std::vector<std::uint64_t> ReceiveFaults::turning_points() const {
  std::vector<std::uint64_t> points;
  for (const Fault& fault : plan_.faults) {
    if (fault.act != Act::rnr) continue;
    if (fault.where.from_ns) points.push_back(*fault.where.from_ns);
    if (fault.where.until_ns) points.push_back(*fault.where.until_ns);
  }
  return points;
}

}  // namespace weir::faults
