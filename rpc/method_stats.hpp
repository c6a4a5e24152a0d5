// What a server counts for each of its functions, and how the counts are shown.
//
// Kept only if ServerOptions::stats asks for it. Then a call costs two clock readings and a few additions to
// memory that one thread writes. A latency is the time from the arrival of the request to the encoding of
// the reply. Threading: a table belongs to the thread of its connections.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rpc/error.hpp"
#include "rpc/wire/compression.hpp"

namespace weir::rpc {

// Counts durations in two ways. For exporters by powers of two of a microsecond: bucket i holds durations up
// to 2^i us, the last one all longer durations. For quantiles finely: sixteen buckets for each power of two,
// at least 64 ns wide, so a bucket is a sixteenth of its value; see fine_bucket_begin_ns().
class LatencyHistogram {
 public:
  static constexpr std::size_t buckets = 26;  // 2^24 us are 16.8 s

  void add(std::chrono::nanoseconds latency);
  const std::array<std::uint64_t, buckets>& counts() const { return counts_; }
  static constexpr std::size_t fine_buckets = 448;  // up to 34 s
  const std::array<std::uint64_t, fine_buckets>& fine_counts() const { return fine_; }
  std::uint64_t total_ns() const { return total_ns_; }

 private:
  std::array<std::uint64_t, buckets> counts_{};
  std::array<std::uint64_t, fine_buckets> fine_{};
  std::uint64_t total_ns_ = 0;
};

// Where bucket `index` of fine_counts() begins, and the one before ends.
double fine_bucket_begin_ns(std::size_t index);

struct MethodStats {
  std::uint64_t failures = 0;  // of the calls in `latency`
  std::uint32_t in_flight = 0;
  std::uint64_t bytes_in = 0;  // bodies and attachments
  std::uint64_t bytes_out = 0;
  CompressionCounts packed_in;  // of arguments and results; what streams carry is in ServerStats only
  CompressionCounts packed_out;
  LatencyHistogram latency;
};

// As it travels: method "weir.stats", no arguments.
struct MethodReport {
  std::string name;
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;
  std::uint32_t in_flight = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t total_ns = 0;
  std::vector<std::uint64_t> latency;  // LatencyHistogram::counts()
  CompressionCounts packed_in;
  CompressionCounts packed_out;
  std::vector<std::uint64_t>
      latency_fine;  // fine_counts(), up to the last that is not 0; older servers have none
};
constexpr std::string_view stats_method = "weir.stats";

MethodReport report(std::string name, const MethodStats& stats);
// Two threads' reports of one function as one.
void add(MethodReport& to, const MethodReport& more);
// The latency that `share` of the calls did not exceed, within a sixteenth of it; in microseconds. Of a
// server that has no fine counts, by interpolation between powers of two.
double quantile_us(const MethodReport& report, double share);
// Text of the Prometheus exposition format, version 0.0.4.
std::string prometheus_text(const std::vector<MethodReport>& reports);

}  // namespace weir::rpc
