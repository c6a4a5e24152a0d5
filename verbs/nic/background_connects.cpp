#include "verbs/nic/background_connects.hpp"

#include <algorithm>

#include "link/not_cancelled.hpp"

namespace weir::verbs {

BackgroundConnects::Ticket BackgroundConnects::begin(link::Slot slot) {
  const std::lock_guard lock(mutex_);
  if (const auto found = under_way_.find(slot); found != under_way_.end()) return found->second;
  if (const auto silent = silent_until_.find(slot); silent != silent_until_.end()) {
    if (link::Clock::now() < silent->second) return 0;
    silent_until_.erase(silent);
  }
  under_way_[slot] = ++last_;
  ++unfinished_;
  link_.connect_async(slot, limit_,
                      [this, slot](const link::Result<link::NeighbourPtr>& result) { ended(slot, result); });
  return last_;
}

bool BackgroundConnects::under_way(link::Slot slot, Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  const auto found = under_way_.find(slot);
  return found != under_way_.end() && found->second == ticket;
}

bool BackgroundConnects::silent(link::Slot slot) const {
  const std::lock_guard lock(mutex_);
  const auto found = silent_until_.find(slot);
  return found != silent_until_.end() && link::Clock::now() < found->second;
}

bool BackgroundConnects::any_under_way(Ticket up_to) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(under_way_, [up_to](const auto& dial) { return dial.second <= up_to; });
}

void BackgroundConnects::finish(std::chrono::milliseconds limit) {
  const link::NotCancelled whole;
  std::unique_lock lock(mutex_);
  all_ended_.wait_for(lock, limit, [this] { return unfinished_ == 0; });
}

// In this order, so that a thread that finds the attempt over also finds the resulting peer.
void BackgroundConnects::ended(link::Slot slot, const link::Result<link::NeighbourPtr>& result) {
  if (result) on_connected_(*result);
  {
    const std::lock_guard lock(mutex_);
    under_way_.erase(slot);
    if (!result && result.error().code == std::errc::timed_out)
      silent_until_[slot] = link::Clock::now() + limit_;
  }
  on_ended_();
  const std::lock_guard lock(mutex_);
  if (--unfinished_ == 0) all_ended_.notify_all();
}

}  // namespace weir::verbs
