// Whether a core of this machine is idle, so that a thread that looks for a while takes it from nobody: no
// more threads run, or want to, than there are cores. The kernel is asked at most once in `between`.
//
// Threading: any thread.
#pragma once

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::waiting {

// How many threads of the machine run or want to, the caller among them, out of the text of /proc/loadavg
// ("0.20 0.18 0.12 1/80 11206": 1 of 80).
inline std::optional<unsigned> runnable_in(std::string_view loadavg) {
  for (int field = 0; field < 3; ++field) {
    const auto blank = loadavg.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    loadavg.remove_prefix(blank + 1);
  }
  unsigned runnable = 0;
  const char* const end = loadavg.data() + loadavg.size();
  const auto [at, error] = std::from_chars(loadavg.data(), end, runnable);
  if (error != std::errc() || at == end || *at != '/') return std::nullopt;
  return runnable;
}

class IdleCore {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Ask = std::optional<unsigned> (*)();  // runnable threads; nothing: unknown, so no core counts as idle
  static constexpr std::chrono::milliseconds between{10};

  IdleCore(unsigned cores, Ask ask) : cores_(cores), ask_(ask) {}

  bool is_there(TimePoint now) {
    const std::int64_t at = now.time_since_epoch().count();
    std::int64_t next = next_.load(std::memory_order_relaxed);
    if (at >= next && next_.compare_exchange_strong(next, (now + between).time_since_epoch().count())) {
      const std::optional<unsigned> runnable = ask_();
      there_.store(runnable && *runnable <= cores_, std::memory_order_relaxed);
    }
    return there_.load(std::memory_order_relaxed);
  }

 private:
  const unsigned cores_;
  const Ask ask_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> there_{false};
};

}  // namespace weir::waiting
