// The durations of one command's calls, counted in log-linear buckets: 128 to an octave, as in Redis
// (two significant digits).
//
// Recording is a shift and an increment, in the cycles of cycles.hpp. Readers convert cycles to time,
// with a rate that is known better by then. The buckets, 28 KB, are allocated at the first call.
// Threading: the server's one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>

#include "metrics/log_buckets.hpp"

namespace weir::kv {

class LatencyHistogram {
 public:
  void record(std::uint64_t cycles) {
    if (buckets_ == nullptr) buckets_ = std::make_unique<Buckets>();
    ++(*buckets_)[Place::of(std::min(cycles, most_cycles))];
    ++count_;
  }

  std::uint64_t count() const { return count_; }

  // Calls `take(most cycles of the bucket, number of calls)` for each used bucket, shortest first.
  template <class Take>
  void each_bucket(Take take) const {
    if (buckets_ == nullptr) return;
    for (std::size_t i = 0; i < bucket_count; ++i) {
      if ((*buckets_)[i] != 0) take(Place::last_of(i), (*buckets_)[i]);
    }
  }

  // The duration that `percent` % of the calls did not exceed; for 0, one that all reached. Needs a call.
  std::uint64_t percentile_cycles(double percent) const {
    const auto wanted = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::floor(percent / 100 * static_cast<double>(count_) + 0.5)));
    std::size_t i = 0;
    for (std::uint64_t seen = (*buckets_)[0]; seen < wanted; seen += (*buckets_)[i]) ++i;
    return percent == 0 ? Place::first_of(i) : Place::last_of(i);
  }

 private:
  using Place = metrics::LogBuckets<7>;
  static constexpr unsigned bits = 34;  // more than the cycles in a second
  static constexpr std::uint64_t most_cycles = (std::uint64_t{1} << bits) - 1;
  static constexpr std::size_t bucket_count = Place::count(bits);
  using Buckets = std::array<std::uint64_t, bucket_count>;

  std::unique_ptr<Buckets> buckets_;
  std::uint64_t count_ = 0;
};

// The percentiles shown by INFO, in the form of latency-tracking-info-percentiles: "50 99 99.9".
std::expected<std::string, std::string> percentiles_line(std::span<const std::string> words);

}  // namespace weir::kv
