// Which server gets a call, and when a call is retried: pure functions.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "rpc/pool/balancer.hpp"
#include "rpc/retry.hpp"

namespace weir::rpc {
namespace {

std::vector<Candidate> servers(int count) {
  std::vector<Candidate> all;
  for (int i = 0; i < count; ++i)
    all.push_back({hash_of("tcp://10.0.0." + std::to_string(i) + ":9000"), 0, true});
  return all;
}

TEST(Balancer, round_robin_takes_turns_and_skips_those_that_are_down) {
  Balancer balancer(Balancing::round_robin);
  auto all = servers(3);
  std::vector<std::size_t> order;
  for (int i = 0; i < 4; ++i) order.push_back(balancer.choose(all, 0).value());
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 0}));
  all[1].usable = false;
  EXPECT_EQ(balancer.choose(all, 0), 2u);
  EXPECT_EQ(balancer.choose(all, 0), 0u);
}

TEST(Balancer, least_loaded_takes_the_least_and_turns_where_equal) {
  Balancer balancer(Balancing::least_loaded);
  auto all = servers(3);
  all[0].in_flight = 5;
  EXPECT_EQ(balancer.choose(all, 0), 1u);
  EXPECT_EQ(balancer.choose(all, 0), 2u);
  EXPECT_EQ(balancer.choose(all, 0), 1u);
  all[1].in_flight = all[2].in_flight = 6;
  EXPECT_EQ(balancer.choose(all, 0), 0u);
}

TEST(Balancer, nobody_is_chosen_where_nobody_is_usable) {
  for (const Balancing how : {Balancing::round_robin, Balancing::least_loaded, Balancing::consistent_hash}) {
    Balancer balancer(how);
    auto all = servers(2);
    for (Candidate& one : all) one.usable = false;
    EXPECT_EQ(balancer.choose(all, 1), std::nullopt) << name_of(how);
    EXPECT_EQ(balancer.choose({}, 1), std::nullopt) << name_of(how);
  }
}

TEST(Balancer, consistent_hash_moves_only_the_keys_of_the_server_that_goes) {
  Balancer balancer(Balancing::consistent_hash);
  auto all = servers(10);
  constexpr std::uint64_t keys = 10'000;
  std::vector<std::size_t> before;
  std::map<std::size_t, int> share;
  for (std::uint64_t key = 0; key < keys; ++key) {
    before.push_back(balancer.choose(all, key).value());
    EXPECT_EQ(balancer.choose(all, key), before.back());
    ++share[before.back()];
  }
  for (const auto& [server, count] : share) EXPECT_NEAR(count, 1000, 150) << server;
  all[3].usable = false;
  for (std::uint64_t key = 0; key < keys; ++key) {
    const auto after = balancer.choose(all, key);
    if (before[key] == 3)
      EXPECT_NE(after, 3u);
    else
      EXPECT_EQ(after, before[key]);
  }
}

struct RetryRow {
  Errc code;
  bool plain, idempotent;
};

TEST(Retry, only_what_did_not_run_or_may_run_twice_is_made_again) {
  const RetryRow rows[] = {{Errc::unreachable, true, true},
                           {Errc::overloaded, true, true},
                           {Errc::draining, true, true},
                           {Errc::closed, false, true},
                           {Errc::connection_lost, false, true},
                           {Errc::failed, false, false},
                           {Errc::deadline_exceeded, false, false},
                           {Errc::cancelled, false, false},
                           {Errc::denied, false, false},
                           {Errc::unknown_method, false, false},
                           {Errc::bad_arguments, false, false},
                           {Errc::too_large, false, false}};
  for (const RetryRow& row : rows) {
    EXPECT_EQ(worth_retrying(row.code, false), row.plain) << name_of(row.code);
    EXPECT_EQ(worth_retrying(row.code, true), row.idempotent) << name_of(row.code);
    if (worth_retrying(row.code, false)) {
      EXPECT_TRUE(did_not_run(row.code)) << name_of(row.code);
    }
  }
}

TEST(Retry, has_a_budget_that_calls_bring_back) {
  RetryOptions options;
  options.budget_share = 0.25;
  options.budget_reserve = 3;
  RetryBudget budget(options);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budget.take());
  EXPECT_FALSE(budget.take());
  for (int i = 0; i < 3; ++i) budget.called();
  EXPECT_FALSE(budget.take());
  budget.called();
  EXPECT_TRUE(budget.take());
  EXPECT_FALSE(budget.take());
  for (int i = 0; i < 1000; ++i) budget.called();
  int again = 0;
  while (budget.take()) ++again;
  EXPECT_EQ(again, 3);
  EXPECT_TRUE(costs_budget(Errc::overloaded) && costs_budget(Errc::connection_lost));
  EXPECT_FALSE(costs_budget(Errc::draining));
}

TEST(Retry, waits_double_up_to_the_most_and_half_of_each_is_chance) {
  RetryOptions options;
  options.first_wait = std::chrono::microseconds(1000);
  options.max_wait = std::chrono::microseconds(5000);
  const std::int64_t whole[] = {1000, 2000, 4000, 5000, 5000};
  for (int i = 0; i < 5; ++i) {
    const auto least = wait_before(i + 2, options, 0).count();
    EXPECT_EQ(least, whole[i] / 2);
    const auto most =
        wait_before(i + 2, options, static_cast<std::uint64_t>(whole[i] - whole[i] / 2)).count();
    EXPECT_EQ(most, whole[i]);
    for (std::uint64_t random = 1; random < 1'000'000'007; random *= 3) {
      const auto wait = wait_before(i + 2, options, random).count();
      EXPECT_GE(wait, least);
      EXPECT_LE(wait, whole[i]);
    }
  }
  EXPECT_EQ(wait_before(1000, options, 0).count(), 2500);
}

}  // namespace
}  // namespace weir::rpc
