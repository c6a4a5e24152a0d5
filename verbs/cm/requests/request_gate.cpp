#include "verbs/cm/requests/request_gate.hpp"

#include <algorithm>
#include <string_view>

namespace weir::cm {
namespace {

std::string_view text_of(const IpBytes& ip) { return {reinterpret_cast<const char*>(ip.data()), ip.size()}; }

}  // namespace

std::uint64_t RequestGate::hash_of(const CmMessage& request) const {
  hash::SipState state(key_);
  state.add(hash::siphash(key_, text_of(request.source.ip)));
  state.add(hash::siphash(key_, text_of(request.destination.ip)));
  state.add(std::uint64_t{request.source.port} << 48 | std::uint64_t{request.destination.port} << 32 |
            request.local_id);
  state.add(std::uint64_t{request.qpn} << 32 | request.psn);
  return state.finish();
}

bool RequestGate::admits(const CmMessage& request, link::Clock::time_point now) {
  if (first_copies_.empty()) first_copies_.resize(places);
  const std::uint64_t hash = hash_of(request);
  const auto mark = static_cast<std::uint32_t>(hash >> 32) | 1;
  const auto now_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count());
  Copy& copy = first_copies_[hash % places];
  const std::uint32_t age_ms = now_ms - copy.at_ms;
  const bool known = copy.mark == mark && age_ms <= latest_repeat.count();
  if (!known) copy = {mark, now_ms};
  if (!crowded()) return true;
  return known && age_ms >= soonest_repeat.count() && half_open_ < max_half_open;
}

bool RequestGate::may_answer_for_nobody(link::Clock::time_point now) {
  constexpr std::chrono::nanoseconds each =
      std::chrono::nanoseconds(std::chrono::seconds(1)) / answers_per_second;
  const auto paid_until = std::max(answers_paid_until_, now) + each;
  if (paid_until > now + answers_at_once * each) return false;
  answers_paid_until_ = paid_until;
  return true;
}

}  // namespace weir::cm
