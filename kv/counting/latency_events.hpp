// The times when the server was busy for long, by kind of work: "command", "expire-cycle". LATENCY reports
// them. For each kind the last samples_kept are known: at most one a second, the worst of that second.
//
// Threading: the server's one thread.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <deque>
#include <string_view>

namespace weir::kv {

class LatencyEvents {
 public:
  static constexpr std::size_t samples_kept = 160;

  struct Sample {
    std::int64_t time_s;
    std::int64_t ms;
  };
  struct Event {
    std::deque<Sample> samples;  // oldest first; never empty
    std::int64_t worst_ms = 0;   // of all samples, including those no longer kept
  };
  using Events = absl::btree_map<std::string_view, Event>;

  // `kind` is a literal: there are few kinds.
  void note(std::string_view kind, std::int64_t time_s, std::int64_t ms);
  // False: there were no events of that kind.
  bool forget(std::string_view kind) { return events_.erase(kind) != 0; }
  std::size_t forget_all();
  const Event* find(std::string_view kind) const;
  const Events& all() const { return events_; }

 private:
  Events events_;
};

}  // namespace weir::kv
