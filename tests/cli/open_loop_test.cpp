// The open loop of weir-benchmark: its schedule under a made-up clock, and a real server that is stopped.
#include "cli/benchmark/open_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "cli/benchmark/load.hpp"
#include "cli/benchmark/report.hpp"
#include "tests/kv/program.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::benchmark {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Time = OpenLoop::Time;

constexpr Time start{1'000'000h};

TEST(OpenLoop, has_each_request_due_at_its_time_and_never_before) {
  for (const double rate : {0.5, 1.0, 3.0, 1000.0, 12'345.0, 1e9}) {
    OpenLoop loop(start, Time::max(), rate, 1000);
    EXPECT_EQ(loop.due(start - 1ns), 0u);
    EXPECT_EQ(loop.due(start), 1u);
    for (std::uint64_t n = 0; n < 200; ++n) {
      const auto due = loop.next();
      EXPECT_NEAR(std::chrono::duration<double>(due - start).count(), static_cast<double>(n) / rate, 2e-9);
      if (rate < 1e8) {
        EXPECT_EQ(loop.due(due - 1ns), 0u) << rate << ' ' << n;
      }
      ASSERT_GE(loop.due(due), 1u) << rate << ' ' << n;
      EXPECT_EQ(loop.take(due), due);
    }
  }
}

TEST(OpenLoop, has_no_request_at_its_end_or_after_nor_more_than_it_was_given) {
  OpenLoop until_the_end(start, start + 1s, 100, 1000);
  EXPECT_EQ(until_the_end.due(start + 1h), 100u);
  OpenLoop few(start, Time::max(), 100, 7);
  EXPECT_EQ(few.due(start + 1h), 7u);
  while (few.due(start + 1h) > 0) few.take(start + 1h);
  EXPECT_TRUE(few.all_taken());
}

TEST(OpenLoop, counts_what_waits_for_the_server_as_latency_and_not_as_lateness) {
  OpenLoop loop(start, Time::max(), 1000, 10'000);
  loop.take(start);
  loop.no_room();  // from here on the server is silent
  EXPECT_EQ(loop.due(start + 3s), 3000u);
  loop.room(start + 3s);
  EXPECT_EQ(loop.take(start + 3s), start + 1ms) << "its latency counts from when it was due";
  EXPECT_EQ(loop.lateness().max_ns(), 0u);
}

TEST(OpenLoop, counts_as_lateness_what_the_generator_waits_although_there_is_room) {
  OpenLoop loop(start, Time::max(), 1000, 10'000);
  loop.take(start);
  loop.take(start + 6ms);  // due at 1 ms
  EXPECT_EQ(loop.lateness().max_ns(), 5'000'000u);
}

TEST(OpenLoop, counts_what_it_gives_up_with_the_time_it_waited) {
  OpenLoop loop(start, start + 2s, 100'000, 1'000'000);
  LatencyHistogram latency;
  EXPECT_EQ(loop.abandon(start + 2s, latency), 200'000u);
  EXPECT_EQ(latency.count(), 200'000u);
  EXPECT_NEAR(static_cast<double>(latency.percentile_ns(50)), 1e9, 2e7);
  EXPECT_NEAR(static_cast<double>(latency.percentile_ns(99)), 1.98e9, 2e7);
  EXPECT_TRUE(loop.all_taken());
  EXPECT_EQ(loop.abandon(start + 3s, latency), 0u);
}

// A stop of the server between two looks at the running load, timed by the load's own clock.
class Stopper final : public LoadWatcher {
 public:
  explicit Stopper(const kv::testing::Program& server) : server_(server) {}

  void running(std::uint64_t done, double) override {
    const auto now = std::chrono::steady_clock::now();
    if (done > 0 && !stopped_) {
      server_.signal(SIGSTOP);
      stopped_ = std::chrono::steady_clock::now();
    } else if (stopped_ && !length_ && now - *stopped_ >= 1s) {
      length_ = now - *stopped_;
      server_.signal(SIGCONT);
    }
  }
  std::chrono::nanoseconds length() const { return length_.value_or(0ns); }

 private:
  const kv::testing::Program& server_;
  std::optional<Time> stopped_;
  std::optional<std::chrono::nanoseconds> length_;
};

class StoppedServer : public testing::Test {
 protected:
  LoadPlan plan() const {
    LoadPlan plan;
    plan.endpoint.transport = client::Transport::unix_socket;
    plan.endpoint.path = folder_.file("s");
    plan.clients = 4;
    plan.pipeline = 2;
    plan.duration_s = 2.5;
    plan.requests = 1'000'000'000;
    return plan;
  }
  void SetUp() override { ASSERT_TRUE(server_.prints("Ready to accept connections")); }

  test::ScratchDirectory folder_;
  kv::testing::Program server_{{"--port", "0", "--unixsocket", folder_.file("s"), "--dir", folder_.path()}};
};

TEST_F(StoppedServer, shows_in_the_percentiles_of_an_open_loop) {
  auto open = plan();
  open.rate_per_s = 2000;
  Stopper stopper(server_);
  const auto result = run_load(open, {"SET", {"SET", "key", "value"}}, &stopper);
  ASSERT_TRUE(result) << result.error().what;
  ASSERT_GE(stopper.length(), 1s);
  // It stood still for at least 1 of 2.5 s, so nearly two of five requests waited, evenly up to the whole
  // stop.
  EXPECT_GT(result->latency.percentile_ns(99), 900'000'000u);
  EXPECT_GT(result->latency.percentile_ns(80), 100'000'000u);
  EXPECT_EQ(result->latency.count(), 5000u);
  EXPECT_EQ(result->requests + result->unsent, 5000u);
}

TEST_F(StoppedServer, hardly_shows_in_those_of_a_closed_loop) {
  Stopper stopper(server_);
  const auto result = run_load(plan(), {"SET", {"SET", "key", "value"}}, &stopper);
  ASSERT_TRUE(result) << result.error().what;
  ASSERT_GE(stopper.length(), 1s);
  EXPECT_LT(result->latency.percentile_ns(99), 900'000'000u);
  EXPECT_GT(result->latency.max_ns(), 900'000'000u);
}

LoadResult result_of(std::uint64_t requests, std::uint64_t late_ns, std::uint64_t nulls) {
  LoadResult result;
  result.requests = requests;
  result.elapsed_s = 1;
  result.nulls = nulls;
  result.latency.record(1000, requests);
  result.lateness.record(late_ns, requests);
  return result;
}

TEST(Warnings, tell_of_a_generator_that_was_late_and_of_replies_without_anything) {
  LoadPlan open;
  open.rate_per_s = 1000;
  EXPECT_THAT(warnings(open, result_of(1000, 100'000, 0)), IsEmpty());
  EXPECT_THAT(warnings(open, result_of(1000, 5'000'000, 0)), ElementsAre(HasSubstr("late itself (p99 5.")));
  EXPECT_THAT(warnings(open, result_of(1000, 0, 999)), IsEmpty());
  EXPECT_THAT(warnings(open, result_of(1000, 0, 1000)), ElementsAre(HasSubstr("write the keys first")));
  auto busy = result_of(500, 0, 0);
  busy.cpu_ns = 990'000'000;
  EXPECT_THAT(warnings(open, busy), ElementsAre(HasSubstr("busy for 99 %")));
  EXPECT_THAT(warnings(LoadPlan{}, busy), IsEmpty());
}

TEST(Warnings, tell_of_a_busy_machine_from_a_tenth_of_the_time_on) {
  for (const bool open : {false, true}) {
    LoadPlan plan;
    if (open) plan.rate_per_s = 1000;
    auto result = result_of(1000, 0, 0);
    result.cpu_wait_ns = 100'000'000;
    EXPECT_THAT(warnings(plan, result), IsEmpty());
    result.cpu_wait_ns = 234'000'000;
    EXPECT_THAT(warnings(plan, result), ElementsAre(HasSubstr("waited for a CPU for 23 % of the time")));
    result.elapsed_s = 3;
    EXPECT_THAT(warnings(plan, result), IsEmpty());
  }
}

TEST(Report, of_an_open_loop_says_the_rate_asked_for_and_reached_and_what_was_not_sent) {
  LoadPlan open;
  open.rate_per_s = 2000;
  auto result = result_of(1000, 0, 0);
  result.unsent = 123;
  const auto text = format_result({}, {"SET", {}}, open, result);
  for (const auto* part :
       {"open loop at 2000/s", "achieved rate: 1000.00/s", "due but not sent by the end: 123"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace weir::benchmark
