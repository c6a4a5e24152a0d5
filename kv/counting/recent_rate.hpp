// How fast a counter has grown lately: over about the last one and a half seconds, as in Redis's
// instantaneous_... fields.
//
// Samples are taken whenever the server does something; an idle server takes none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::kv {

class RecentRate {
 public:
  void sample(std::int64_t now_ms, std::uint64_t counter) {
    samples_[next_++ % samples_.size()] = {now_ms, counter};
  }

  // Per second. 0 while nothing is known.
  double at(std::int64_t now_ms, std::uint64_t counter) const {
    const Sample* from = nullptr;
    for (std::size_t back = 1; back <= samples_.size() && back <= next_; ++back) {
      const Sample& sample = samples_[(next_ - back) % samples_.size()];
      // Use a sample beyond the window only if there is none within it.
      if (from != nullptr && now_ms - sample.ms > window_ms) break;
      if (sample.ms < now_ms) from = &sample;
    }
    if (from == nullptr || counter < from->counter) return 0;
    return static_cast<double>(counter - from->counter) * 1000 / static_cast<double>(now_ms - from->ms);
  }

 private:
  struct Sample {
    std::int64_t ms = 0;
    std::uint64_t counter = 0;
  };
  static constexpr std::int64_t window_ms = 1600;
  std::array<Sample, 16> samples_{};
  std::size_t next_ = 0;
};

}  // namespace weir::kv
