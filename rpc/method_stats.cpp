#include "rpc/method_stats.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "metrics/log_buckets.hpp"
#include "metrics/prometheus.hpp"
#include "rpc/latency_text.hpp"

namespace weir::rpc {

namespace {
using FinePlace = metrics::LogBuckets<4>;  // sixteen buckets to an octave
constexpr unsigned unit_bits = 6;          // units of 64 ns

std::size_t fine_bucket(std::uint64_t ns) {
  return std::min(FinePlace::of(ns >> unit_bits), LatencyHistogram::fine_buckets - 1);
}
}  // namespace

double fine_bucket_begin_ns(std::size_t index) {
  return static_cast<double>(FinePlace::first_of(index)) * static_cast<double>(1u << unit_bits);
}

void LatencyHistogram::add(std::chrono::nanoseconds latency) {
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0));
  const std::uint64_t us = (ns + 999) / 1000;  // a bucket includes its upper bound
  const auto bucket = static_cast<std::size_t>(us <= 1 ? 0 : std::bit_width(us - 1));
  ++counts_[std::min(bucket, buckets - 1)];
  ++fine_[fine_bucket(ns)];
  total_ns_ += ns;
}

MethodReport report(std::string name, const MethodStats& stats) {
  MethodReport made;
  made.name = std::move(name);
  const auto& counts = stats.latency.counts();
  made.latency.assign(counts.begin(), counts.end());
  const auto& fine = stats.latency.fine_counts();
  const auto last = std::find_if(fine.rbegin(), fine.rend(), [](std::uint64_t count) { return count > 0; });
  made.latency_fine.assign(fine.begin(), last.base());
  made.calls = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  made.failures = stats.failures;
  made.in_flight = stats.in_flight;
  made.bytes_in = stats.bytes_in;
  made.bytes_out = stats.bytes_out;
  made.total_ns = stats.latency.total_ns();
  made.packed_in = stats.packed_in;
  made.packed_out = stats.packed_out;
  return made;
}

void add(MethodReport& to, const MethodReport& more) {
  to.calls += more.calls;
  to.failures += more.failures;
  to.in_flight += more.in_flight;
  to.bytes_in += more.bytes_in;
  to.bytes_out += more.bytes_out;
  to.total_ns += more.total_ns;
  to.packed_in += more.packed_in;
  to.packed_out += more.packed_out;
  for (std::size_t i = 0; i < to.latency.size() && i < more.latency.size(); ++i)
    to.latency[i] += more.latency[i];
  to.latency_fine.resize(std::max(to.latency_fine.size(), more.latency_fine.size()));
  for (std::size_t i = 0; i < more.latency_fine.size(); ++i) to.latency_fine[i] += more.latency_fine[i];
}

double quantile_us(const MethodReport& report, double share) {
  const double wanted = share * static_cast<double>(report.calls);
  double before = 0;
  for (std::size_t i = 0; i < report.latency_fine.size() && i < LatencyHistogram::fine_buckets; ++i) {
    const auto count = static_cast<double>(report.latency_fine[i]);
    if (count > 0 && before + count >= wanted) {
      const double low = fine_bucket_begin_ns(i), high = fine_bucket_begin_ns(i + 1);
      return (low + (high - low) * (wanted - before) / count) * 1e-3;
    }
    before += count;
  }
  before = 0;
  for (std::size_t i = 0; i < report.latency.size(); ++i) {
    const auto count = static_cast<double>(report.latency[i]);
    if (count > 0 && before + count >= wanted) {
      const double low = i == 0 ? 0 : static_cast<double>(std::uint64_t{1} << (i - 1));
      const double high = static_cast<double>(std::uint64_t{1} << std::min<std::size_t>(i, 62));
      return low + (high - low) * (wanted - before) / count;
    }
    before += count;
  }
  return 0;
}

namespace {

using MetricType = metrics::PrometheusText::Type;

struct Metric {
  const char* name;
  MetricType type;
  const char* help;
  std::uint64_t (*value)(const MethodReport&);
};
constexpr Metric method_metrics[] = {
    {"weir_rpc_calls_total", MetricType::counter, "Calls that ended.",
     [](const MethodReport& r) { return r.calls; }},
    {"weir_rpc_failures_total", MetricType::counter, "Calls that ended with an error.",
     [](const MethodReport& r) { return r.failures; }},
    {"weir_rpc_in_flight", MetricType::gauge, "Calls under way.",
     [](const MethodReport& r) { return std::uint64_t{r.in_flight}; }},
    {"weir_rpc_request_bytes_total", MetricType::counter, "Bytes of arguments and attachments that came.",
     [](const MethodReport& r) { return r.bytes_in; }},
    {"weir_rpc_reply_bytes_total", MetricType::counter, "Bytes of results and attachments that went.",
     [](const MethodReport& r) { return r.bytes_out; }},
    {"weir_rpc_compressed_requests_total", MetricType::counter, "Requests whose arguments came compressed.",
     [](const MethodReport& r) { return r.packed_in.bodies; }},
    {"weir_rpc_compressed_request_bytes_total", MetricType::counter, "Bytes of those arguments as they came.",
     [](const MethodReport& r) { return r.packed_in.bytes_after; }},
    {"weir_rpc_uncompressed_request_bytes_total", MetricType::counter,
     "Bytes of those arguments before compression.",
     [](const MethodReport& r) { return r.packed_in.bytes_before; }},
    {"weir_rpc_compressed_replies_total", MetricType::counter, "Replies whose result went compressed.",
     [](const MethodReport& r) { return r.packed_out.bodies; }},
    {"weir_rpc_compressed_reply_bytes_total", MetricType::counter, "Bytes of those results as they went.",
     [](const MethodReport& r) { return r.packed_out.bytes_after; }},
    {"weir_rpc_uncompressed_reply_bytes_total", MetricType::counter,
     "Bytes of those results before compression.",
     [](const MethodReport& r) { return r.packed_out.bytes_before; }},
};

}  // namespace

void write_latency(metrics::PrometheusText& text, const metrics::Labels& labels,
                   std::span<const std::uint64_t> counts, std::uint64_t total_ns) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i + 1 < counts.size(); ++i) {
    below += counts[i];
    text.bucket(static_cast<double>(std::uint64_t{1} << std::min<std::size_t>(i, 62)) * 1e-6, below, labels);
  }
  const std::uint64_t all = counts.empty() ? 0 : below + counts.back();
  if (!counts.empty()) text.bucket_of_all(all, labels);
  text.sum_and_count(static_cast<double>(total_ns) * 1e-9, all, labels);
}

std::string prometheus_text(const std::vector<MethodReport>& reports) {
  metrics::PrometheusText text;
  for (const Metric& metric : method_metrics) {
    text.metric(metric.name, metric.type, metric.help);
    for (const MethodReport& one : reports) text.sample(metric.value(one), {"method", one.name});
  }
  text.metric("weir_rpc_latency_seconds", MetricType::histogram,
              "Time from a request's arrival to its reply.");
  for (const MethodReport& one : reports)
    write_latency(text, {"method", one.name}, one.latency, one.total_ns);
  return text.take();
}

}  // namespace weir::rpc
