#include "verbs/nic/carrier/carrier_choice.hpp"

#include <algorithm>
#include <utility>

namespace weir::verbs {

// With mutex_ held, as the next.
void CarrierChoice::count() {
  const auto moved = std::ranges::count_if(paths_, [](const auto& entry) { return entry.second.by_stream; });
  moved_.store(static_cast<std::size_t>(moved), std::memory_order_relaxed);
  heeded_.store(paths_.size() - static_cast<std::size_t>(moved), std::memory_order_relaxed);
}

CarrierChoice::State* CarrierChoice::find(const Path& path) {
  const auto found = paths_.find(path);
  return found != paths_.end() ? &found->second : nullptr;
}

bool CarrierChoice::goes_by_stream(const Path& path) const {
  if (!any_by_stream()) return false;
  const std::lock_guard lock(mutex_);
  const auto found = paths_.find(path);
  return found != paths_.end() && found->second.by_stream;
}

bool CarrierChoice::asks(const Path& path, link::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (paths_.size() >= max_paths && !paths_.contains(path)) {
    std::erase_if(paths_, [](const auto& entry) { return !entry.second.has_stream; });
    if (paths_.size() >= max_paths) return false;
  }
  const auto [at, is_new] = paths_.try_emplace(path);
  State& state = at->second;
  if (is_new) count();
  if (state.asked) return now - state.since >= silence;
  state.asked = true;
  state.since = now;
  return false;
}

void CarrierChoice::heard(const Path& path) {
  const std::lock_guard lock(mutex_);
  State* const state = find(path);
  if (state == nullptr || state->by_stream) return;
  state->heard = state->heard_for_peer = true;
  state->asked = false;
  if (state->has_stream) return;
  paths_.erase(path);
  count();
}

void CarrierChoice::joined(const Path& path) {
  const std::lock_guard lock(mutex_);
  State& state = paths_[path];
  state.has_stream = true;
  state.heard_for_peer = false;
  count();
}

bool CarrierChoice::doubt(const Path& path, link::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  State* const state = find(path);
  if (state == nullptr || state->by_stream || now - state->doubted < doubt_pause) return false;
  state->doubted = now;
  state->heard = false;
  return true;
}

bool CarrierChoice::hears(const Path& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = paths_.find(path);
  return found != paths_.end() && found->second.heard;
}

bool CarrierChoice::answers(const Path& path) {
  const std::lock_guard lock(mutex_);
  State* const state = find(path);
  return state != nullptr && std::exchange(state->heard_for_peer, false);
}

bool CarrierChoice::move(const Path& path) {
  const std::lock_guard lock(mutex_);
  State& state = paths_[path];
  if (state.by_stream) return false;
  state.by_stream = state.has_stream = true;
  state.asked = false;
  count();
  return true;
}

void CarrierChoice::move_back(const Path& path) {
  const std::lock_guard lock(mutex_);
  if (paths_.erase(path) != 0) count();
}

}  // namespace weir::verbs
