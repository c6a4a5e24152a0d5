// Counts of calls and how they are shown.
#include "rpc/method_stats.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace weir::rpc {
namespace {

struct BucketRow {
  std::int64_t ns;
  std::size_t bucket;
};

TEST(LatencyHistogram, a_bucket_holds_what_is_up_to_its_bound) {
  const BucketRow rows[] = {{-5, 0},
                            {0, 0},
                            {999, 0},
                            {1000, 0},
                            {1001, 1},
                            {2000, 1},
                            {2001, 2},
                            {4000, 2},
                            {4001, 3},
                            {1'024'000, 10},
                            {1'024'001, 11},
                            {16'777'216'000, 24},
                            {16'777'217'000, 25},
                            {INT64_MAX / 2, 25}};
  for (const BucketRow& row : rows) {
    LatencyHistogram histogram;
    histogram.add(std::chrono::nanoseconds(row.ns));
    EXPECT_EQ(histogram.counts().at(row.bucket), 1u) << row.ns;
  }
}

MethodReport some_report() {
  MethodStats stats;
  stats.failures = 1;
  stats.bytes_in = 30;
  stats.bytes_out = 40;
  stats.packed_in = {2, 5000, 700};
  stats.packed_out = {1, 3000, 60};
  for (int i = 0; i < 3; ++i) stats.latency.add(std::chrono::microseconds(3));
  stats.latency.add(std::chrono::seconds(20));
  return report("shop.add", stats);
}

TEST(MethodStats, quantiles_are_found_in_their_bucket) {
  const MethodReport one = some_report();
  EXPECT_EQ(one.calls, 4u);
  EXPECT_GT(quantile_us(one, 0.5), 2);
  EXPECT_LE(quantile_us(one, 0.5), 4);
  EXPECT_NEAR(quantile_us(one, 0.75), 3, 0.2);
  EXPECT_GT(quantile_us(one, 0.99), 16'000'000);
  EXPECT_EQ(quantile_us(MethodReport(), 0.5), 0);
}

TEST(MethodStats, quantiles_are_within_a_sixteenth_of_what_they_are) {
  std::mt19937_64 random(7);
  MethodStats stats;
  std::vector<double> all_us;
  for (int i = 0; i < 20'000; ++i) {
    const double us = std::exp2(static_cast<double>(random() % 2300) / 100);  // a microsecond to 8 s
    all_us.push_back(us);
    stats.latency.add(std::chrono::nanoseconds(std::llround(us * 1000)));
  }
  std::ranges::sort(all_us);
  const MethodReport one = report("f", stats);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = all_us[static_cast<std::size_t>(share * static_cast<double>(all_us.size())) - 1];
    EXPECT_NEAR(quantile_us(one, share), exact, exact / 16) << share;
  }
}

TEST(LatencyHistogram, fine_buckets_follow_each_other) {
  for (std::size_t i = 0; i + 1 < LatencyHistogram::fine_buckets; ++i) {
    LatencyHistogram histogram;
    histogram.add(std::chrono::nanoseconds(static_cast<std::int64_t>(fine_bucket_begin_ns(i))));
    histogram.add(std::chrono::nanoseconds(static_cast<std::int64_t>(fine_bucket_begin_ns(i + 1)) - 1));
    EXPECT_EQ(histogram.fine_counts()[i], 2u) << i;
  }
}

TEST(MethodStats, two_threads_reports_are_one) {
  MethodReport all = some_report();
  add(all, some_report());
  EXPECT_EQ(all.calls, 8u);
  EXPECT_EQ(all.failures, 2u);
  EXPECT_EQ(all.bytes_in, 60u);
  EXPECT_EQ(all.packed_in.bodies, 4u);
  EXPECT_EQ(all.packed_in.bytes_before, 10'000u);
  EXPECT_EQ(all.packed_out.bytes_after, 120u);
}

TEST(MethodStats, prometheus_text_is_cumulative_and_escaped) {
  MethodReport odd = some_report();
  odd.name = "a\"b\\c\nd";
  const std::string text = prometheus_text({some_report(), odd});
  for (const char* line :
       {"# TYPE weir_rpc_latency_seconds histogram\n", "weir_rpc_calls_total{method=\"shop.add\"} 4\n",
        "weir_rpc_failures_total{method=\"shop.add\"} 1\n",
        "weir_rpc_request_bytes_total{method=\"shop.add\"} 30\n",
        "weir_rpc_latency_seconds_bucket{method=\"shop.add\",le=\"2e-06\"} 0\n",
        "weir_rpc_latency_seconds_bucket{method=\"shop.add\",le=\"4e-06\"} 3\n",
        "weir_rpc_latency_seconds_bucket{method=\"shop.add\",le=\"16.777216\"} 3\n",
        "weir_rpc_latency_seconds_bucket{method=\"shop.add\",le=\"+Inf\"} 4\n",
        "weir_rpc_latency_seconds_count{method=\"shop.add\"} 4\n",
        "weir_rpc_compressed_requests_total{method=\"shop.add\"} 2\n",
        "weir_rpc_uncompressed_request_bytes_total{method=\"shop.add\"} 5000\n",
        "weir_rpc_compressed_request_bytes_total{method=\"shop.add\"} 700\n",
        "weir_rpc_compressed_replies_total{method=\"shop.add\"} 1\n",
        "weir_rpc_uncompressed_reply_bytes_total{method=\"shop.add\"} 3000\n",
        "weir_rpc_compressed_reply_bytes_total{method=\"shop.add\"} 60\n",
        "weir_rpc_calls_total{method=\"a\\\"b\\\\c\\nd\"} 4\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

}  // namespace
}  // namespace weir::rpc
