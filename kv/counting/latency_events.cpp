#include "kv/counting/latency_events.hpp"

#include <algorithm>

namespace weir::kv {

void LatencyEvents::note(std::string_view kind, std::int64_t time_s, std::int64_t ms) {
  Event& event = events_[kind];
  event.worst_ms = std::max(event.worst_ms, ms);
  if (!event.samples.empty() && event.samples.back().time_s == time_s) {
    event.samples.back().ms = std::max(event.samples.back().ms, ms);
    return;
  }
  event.samples.push_back({time_s, ms});
  if (event.samples.size() > samples_kept) event.samples.pop_front();
}

std::size_t LatencyEvents::forget_all() {
  const std::size_t count = events_.size();
  events_.clear();
  return count;
}

const LatencyEvents::Event* LatencyEvents::find(std::string_view kind) const {
  const auto found = events_.find(kind);
  return found == events_.end() ? nullptr : &found->second;
}

}  // namespace weir::kv
