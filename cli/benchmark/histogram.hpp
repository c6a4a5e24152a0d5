// Latencies in nanoseconds, counted in log-linear buckets, 128 per octave. So percentiles are accurate to 0.8
// % from 1 ns to 500 years, recording is a shift and an increment, and histograms can be added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "metrics/log_buckets.hpp"

namespace weir::benchmark {

class LatencyHistogram {
 public:
  LatencyHistogram() : buckets_(bucket_count) {}

  void record(std::uint64_t ns, std::uint64_t times = 1) {
    buckets_[Place::of(ns)] += times;
    count_ += times;
    sum_ns_ += static_cast<double>(ns) * static_cast<double>(times);
    min_ns_ = std::min(min_ns_, ns);
    max_ns_ = std::max(max_ns_, ns);
  }

  void add(const LatencyHistogram& other) {
    for (std::size_t i = 0; i < bucket_count; ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ns_ += other.sum_ns_;
    min_ns_ = std::min(min_ns_, other.min_ns_);
    max_ns_ = std::max(max_ns_, other.max_ns_);
  }

  std::uint64_t count() const { return count_; }
  double mean_ns() const { return count_ ? sum_ns_ / static_cast<double>(count_) : 0; }
  std::uint64_t min_ns() const { return count_ ? min_ns_ : 0; }
  std::uint64_t max_ns() const { return max_ns_; }

  // The latency that `percent` % of the samples did not exceed; 100: the maximum.
  std::uint64_t percentile_ns(double percent) const {
    const auto wanted = std::max(1.0, percent / 100 * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < bucket_count; ++i) {
      seen += buckets_[i];
      if (static_cast<double>(seen) >= wanted) return std::clamp(Place::last_of(i), min_ns(), max_ns_);
    }
    return max_ns_;
  }

 private:
  using Place = metrics::LogBuckets<7>;
  static constexpr std::size_t bucket_count = Place::count(64);

  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  double sum_ns_ = 0;
  std::uint64_t min_ns_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_ns_ = 0;
};

}  // namespace weir::benchmark
