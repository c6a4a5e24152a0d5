// When a pool hedges a call, and which servers it ejects: pure functions.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rpc/pool/hedging.hpp"
#include "rpc/pool/outliers.hpp"

namespace weir::rpc {
namespace {

TEST(HedgingTokens, half_are_a_burst_and_calls_bring_a_share) {
  HedgingOptions options;
  options.max_tokens = 4;
  options.token_ratio = 0.25;
  HedgingTokens tokens(options);
  EXPECT_TRUE(tokens.take());
  EXPECT_TRUE(tokens.take());
  EXPECT_FALSE(tokens.take());
  int hedges = 0;
  for (int call = 0; call < 40; ++call) {
    tokens.ended_well();
    hedges += tokens.take() ? 1 : 0;
  }
  EXPECT_EQ(hedges, 10);
}

TEST(HedgingTokens, failed_calls_stop_hedges) {
  HedgingOptions options;
  options.max_tokens = 10;
  HedgingTokens tokens(options);
  for (int i = 0; i < 5; ++i) tokens.failed();
  EXPECT_FALSE(tokens.take());
}

// Calls of each server in an interval, and which servers that ejects.
struct Interval {
  const char* name;
  std::vector<ServerRecord> servers;
  OutlierOptions options;
  std::vector<std::size_t> ejected;
};
OutlierOptions outlier_options(double max_ejected, double failures = 0.85) {
  OutlierOptions options;
  options.max_ejected = max_ejected;
  options.failures = failures;
  return options;
}

TEST(Outliers, are_judged_by_share_and_deviation) {
  const Interval intervals[] = {
      {"all well", {{100, 0}, {100, 0}}, outlier_options(1), {}},
      {"one of two fails", {{100, 0}, {10, 90}}, outlier_options(1), {1}},
      {"just below the share", {{100, 0}, {16, 84}}, outlier_options(1), {}},
      {"too few calls", {{100, 0}, {0, 49}}, outlier_options(1), {}},
      {"no calls at all", {{0, 0}, {0, 0}}, outlier_options(1), {}},
      {"all fail: one at most", {{0, 100}, {0, 100}, {0, 100}}, outlier_options(0.1), {0}},
      {"two thirds may be out", {{0, 100}, {0, 100}, {0, 100}}, outlier_options(0.6), {0, 1}},
      // Mean 0.9, standard deviation 0.2: below 0.52 is an outlier (gRPC's A50).
      {"one of five by deviation",
       {{100, 0}, {100, 0}, {100, 0}, {50, 50}, {100, 0}},
       outlier_options(1, 2),
       {3}},
      {"four are too few for deviations",
       {{100, 0}, {100, 0}, {100, 0}, {50, 50}},
       outlier_options(1, 2),
       {}},
      {"alike", {{50, 50}, {50, 50}, {50, 50}, {50, 50}, {50, 50}}, outlier_options(1, 2), {}},
  };
  for (const Interval& one : intervals) {
    SCOPED_TRACE(one.name);
    std::vector<ServerRecord> servers = one.servers;
    std::vector<ServerRecord*> all;
    for (ServerRecord& server : servers) all.push_back(&server);
    EXPECT_EQ(judge(all, one.options, {}), one.ejected.size());
    for (std::size_t i = 0; i < servers.size(); ++i) {
      EXPECT_EQ(servers[i].ejected(), std::ranges::find(one.ejected, i) != one.ejected.end()) << i;
      EXPECT_EQ(servers[i].well + servers[i].failed, 0u);
    }
  }
}

TEST(Outliers, stay_out_longer_each_time_and_are_forgiven) {
  const OutlierOptions options = outlier_options(1);
  ServerRecord good, bad;
  const std::vector<ServerRecord*> all{&good, &bad};
  ServerRecord::Clock::time_point now{};
  const auto fail = [&] { good.well = bad.failed = 100; };
  for (const int seconds : {30, 60, 90}) {
    fail();
    EXPECT_EQ(judge(all, options, now), 1u);
    now += std::chrono::seconds(seconds) - std::chrono::milliseconds(1);
    judge(all, options, now);
    EXPECT_TRUE(bad.ejected()) << seconds;
    now += std::chrono::milliseconds(1);
    judge(all, options, now);
    EXPECT_FALSE(bad.ejected()) << seconds;
  }
  for (int i = 0; i < 3; ++i) judge(all, options, now);
  EXPECT_EQ(bad.ejections, 0u);
}

TEST(Outliers, only_what_a_server_did_counts) {
  for (const Errc code :
       {Errc::overloaded, Errc::unreachable, Errc::connection_lost, Errc::deadline_exceeded})
    EXPECT_TRUE(counts_against_server(code)) << name_of(code);
  for (const Errc code : {Errc::failed, Errc::cancelled, Errc::bad_arguments, Errc::denied, Errc::draining})
    EXPECT_FALSE(counts_against_server(code)) << name_of(code);
}

}  // namespace
}  // namespace weir::rpc
