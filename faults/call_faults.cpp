#include "faults/call_faults.hpp"

#include <algorithm>
#include <utility>

#include "faults/draw.hpp"

namespace weir::faults {
namespace {

bool is_about(const Fault& fault, Call call) {
  if (fault.act == Act::complete) return call == Call::completion;
  if (fault.act == Act::qp_error) return call == Call::polled && !begins_by_itself(fault);
  return fault.act == Act::refuse && fault.where.call == call;
}

}  // namespace

CallFaults::CallFaults(Plan plan, std::size_t remembered)
    : plan_(std::move(plan)), remembered_(remembered), tallies_(plan_.faults.size()) {}

bool CallFaults::concern(Call call) const {
  return std::ranges::any_of(plan_.faults, [&](const Fault& fault) { return is_about(fault, call); });
}

bool CallFaults::fires(std::size_t index, std::uint64_t qp) const {
  const Where& where = plan_.faults[index].where;
  const Tally& tally = tallies_[index];
  if (where.nth && !where.nth->has(tally.met)) return false;
  if (where.every && tally.met % *where.every != 0) return false;
  if (where.times && tally.fired >= *where.times) return false;
  return !where.rate ||
         is_within(mixed(mixed(mixed(plan_.seed) ^ index) ^ (qp << 32 | tally.met)), *where.rate);
}

std::optional<std::uint64_t> CallFaults::judge(Call call, std::uint64_t qp, std::uint64_t now_ns) {
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const Fault& fault = plan_.faults[i];
    const Where& where = fault.where;
    if (!is_about(fault, call) || (where.qp && !where.qp->has(qp))) continue;
    if ((where.from_ns && now_ns < *where.from_ns) || (where.until_ns && now_ns >= *where.until_ns)) continue;
    Tally& tally = tallies_[i];
    ++tally.met;
    if (!fires(i, qp)) continue;
    ++tally.fired;
    if (tally.firings.size() < remembered_) tally.firings.push_back({now_ns, call, qp, tally.met});
    return fault.amount;
  }
  return std::nullopt;
}

void CallFaults::fired(std::size_t index, std::uint64_t qp, std::uint64_t now_ns) {
  Tally& tally = tallies_[index];
  ++tally.met;
  ++tally.fired;
  if (tally.firings.size() < remembered_) tally.firings.push_back({now_ns, Call::polled, qp, 0});
}

}  // namespace weir::faults
