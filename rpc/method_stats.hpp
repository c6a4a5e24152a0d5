// What a server counts of each of its functions, and how that is shown.
//
// Kept only where ServerOptions::stats says so; then a call costs two looks at the clock and a few additions
// to memory that one thread writes. A latency is the time from the arrival of the request to the encoding of
// the reply. Threading: a table belongs to the thread of its connections.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rpc/compression.hpp"
#include "rpc/error.hpp"

namespace weir::rpc {

// Counts of durations by powers of two of a microsecond: bucket i holds those up to 2^i us, the last all
// longer.
class LatencyHistogram {
 public:
  static constexpr std::size_t buckets = 26;  // 2^24 us are 16.8 s

  void add(std::chrono::nanoseconds latency);
  const std::array<std::uint64_t, buckets>& counts() const { return counts_; }
  std::uint64_t total_ns() const { return total_ns_; }

 private:
  std::array<std::uint64_t, buckets> counts_{};
  std::uint64_t total_ns_ = 0;
};

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
};
constexpr std::string_view stats_method = "weir.stats";

MethodReport report(std::string name, const MethodStats& stats);
// Two threads' reports of one function as one.
void add(MethodReport& to, const MethodReport& more);
// The latency that `share` of the calls did not exceed, by interpolation in its bucket; in microseconds.
double quantile_us(const MethodReport& report, double share);
// Text of the Prometheus exposition format, version 0.0.4.
std::string prometheus_text(const std::vector<MethodReport>& reports);

}  // namespace weir::rpc
