#include "tests/bystander/watch.hpp"

#include <algorithm>
#include <cstdio>

namespace weir::bystander {

Waits::Waits(std::vector<std::uint32_t> us) : us_(std::move(us)) { std::ranges::sort(us_); }

std::uint32_t Waits::percentile_us(double percent) const {
  if (us_.empty()) return 0;
  const auto at = static_cast<std::size_t>(percent / 100 * static_cast<double>(us_.size()));
  return us_[std::min(at, us_.size() - 1)];
}

void Watch::answered(std::size_t transport, Visit visit, Clock::time_point now) {
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - open(transport, visit));
  waits_.push_back(
      {during_, static_cast<std::uint8_t>(transport), visit, static_cast<std::uint32_t>(waited.count())});
  open(transport, visit) = never;
}

std::chrono::microseconds Watch::longest_open(Clock::time_point now) const {
  std::chrono::microseconds longest{0};
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (open_[i] == never) continue;
    const auto waited = now - open_[i] - (needs_keys(i) ? script_holds : std::chrono::seconds(0));
    longest = std::max(longest, std::chrono::duration_cast<std::chrono::microseconds>(waited));
  }
  return longest;
}

bool Watch::all_since(Clock::time_point then) const {
  for (std::size_t i = 0; i < open_.size(); ++i)
    if (open_[i] != never && open_[i] < then && !needs_keys(i)) return false;
  return true;
}

void Watch::give_up(Clock::time_point now) {
  for (std::size_t i = 0; i < open_.size(); ++i)
    if (open_[i] != never) answered(i / visits, static_cast<Visit>(i % visits), now);
}

std::string milliseconds(std::uint32_t us) {
  char text[32];
  const double ms = us / 1000.0;
  std::snprintf(text, sizeof text, ms < 10 ? "%.2f" : "%.0f", ms);
  return text;
}

}  // namespace weir::bystander
