// The parts of weir-benchmark that work without a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <random>
#include <sstream>

#include "cli/benchmark/chart.hpp"
#include "cli/benchmark/histogram.hpp"
#include "cli/benchmark/load.hpp"
#include "cli/benchmark/options.hpp"
#include "cli/benchmark/workload.hpp"
#include "tests/scratch_directory.hpp"
#include "transport/owned_fd.hpp"

namespace weir::benchmark {
namespace {

using Words = std::vector<std::string>;
using testing::HasSubstr;

// A server that accepts connections and requests, and never answers.
class SilentServer {
 public:
  SilentServer() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
  }
  std::string path() const { return directory_.file("s"); }

 private:
  test::ScratchDirectory directory_;
  OwnedFd listener_;
};

TEST(Load, ends_without_waiting_for_replies_when_it_is_stopped) {
  struct Stopper final : LoadWatcher {
    std::atomic<bool> stop{false};
    void running(std::uint64_t, double) override { stop = true; }
  };
  const SilentServer server;
  const Workload workload{"GET", {"GET", "key"}};
  for (const bool before_it_begins : {false, true}) {
    Stopper stopper;
    stopper.stop = before_it_begins;
    LoadPlan plan;
    plan.endpoint.transport = client::Transport::unix_socket;
    plan.endpoint.path = server.path();
    plan.clients = 2;
    plan.reply_limit = client::Milliseconds{3'600'000};
    plan.stop = &stopper.stop;
    const auto result = run_load(plan, workload, &stopper);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->requests, 0U);
  }
}

TEST(Help, fits_in_120_columns_and_names_every_test) {
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
  for (const auto* name : {"ping,", "set,", "lrange_600,", "mset,", "evalsha\n"})
    EXPECT_THAT(help_text(), HasSubstr(name));
}

TEST(Load, ends_with_an_error_when_the_server_does_not_answer) {
  const SilentServer server;
  const Workload workload{"GET", {"GET", "key"}};
  LoadPlan plan;
  plan.endpoint.transport = client::Transport::unix_socket;
  plan.endpoint.path = server.path();
  plan.clients = 2;
  plan.reply_limit = plan.last_reply_limit = client::Milliseconds{20};
  for (const bool for_a_time : {false, true}) {
    if (for_a_time) {
      plan.duration_s = 0.01;
      plan.reply_limit = client::Milliseconds{3'600'000};
    }
    const auto result = run_load(plan, workload);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, client::ErrorKind::timed_out);
    EXPECT_THAT(result.error().what, HasSubstr("did not answer for 20 ms, with 2 requests under way"));
  }
}

TEST(Histogram, gives_exact_percentiles_of_small_values) {
  LatencyHistogram histogram;
  for (std::uint64_t ns = 1; ns <= 100; ++ns) histogram.record(ns);
  EXPECT_EQ(histogram.percentile_ns(50), 50u);
  EXPECT_EQ(histogram.percentile_ns(99), 99u);
  EXPECT_EQ(histogram.percentile_ns(0), 1u);
  EXPECT_EQ(histogram.percentile_ns(100), 100u);
  EXPECT_DOUBLE_EQ(histogram.mean_ns(), 50.5);
}

TEST(Histogram, is_right_to_one_percent_over_its_whole_range) {
  constexpr unsigned seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t value = random() >> (random() % 64);
    LatencyHistogram histogram;
    histogram.record(value);
    histogram.record(~std::uint64_t{0});  // so that the percentile is not cut to the maximum
    const auto told = histogram.percentile_ns(50);
    EXPECT_GE(told, value);
    EXPECT_LE(static_cast<double>(told), static_cast<double>(value) * 1.01 + 1);
  }
}

TEST(Histogram, of_two_threads_adds_up) {
  LatencyHistogram one, two, both;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    (i % 3 ? one : two).record(i * i, 2);
    both.record(i * i, 2);
  }
  one.add(two);
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.min_ns(), both.min_ns());
  EXPECT_EQ(one.max_ns(), both.max_ns());
  for (const double percent : {1.0, 50.0, 99.0, 99.9})
    EXPECT_EQ(one.percentile_ns(percent), both.percentile_ns(percent));
}

TEST(Histogram, that_is_empty_says_zero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.percentile_ns(50), 0u);
  EXPECT_EQ(histogram.mean_ns(), 0);
}

TEST(StandardWorkloads, are_chosen_by_name_in_their_own_order) {
  const auto titles_of = [](const Words& names) {
    Words titles;
    const auto chosen = standard_workloads(names, 3, {});
    for (const auto& workload : *chosen) titles.push_back(workload.title);
    return titles;
  };
  EXPECT_EQ(titles_of({"GET", "set"}), (Words{"SET", "GET"}));
  EXPECT_EQ(titles_of({"ping"}), (Words{"PING_INLINE", "PING_MBULK"}));
  EXPECT_EQ(titles_of({"lrange_100"}),
            (Words{"LPUSH (needed to benchmark LRANGE)", "LRANGE_100 (first 100 elements)"}));
  EXPECT_GT(titles_of({}).size(), 15u);
  const Words wrong{"nosuch"};
  EXPECT_THAT(standard_workloads(wrong, 3, {}).error().what, HasSubstr("mset"));
}

TEST(Options, read_a_comparison) {
  const auto options =
      parse_options(Words{"--compare", "tcp,rdma+tls", "-c", "1,50", "-P", "1,16", "-t", "get", "--chart",
                          "a.svg", "--chart", "b.png", "--duration", "0.5"});
  ASSERT_TRUE(options);
  EXPECT_THAT(options->compare, testing::ElementsAre(client::Transport::tcp, client::Transport::rdma_tls));
  EXPECT_THAT(options->clients, testing::ElementsAre(1, 50));
  EXPECT_THAT(options->pipeline, testing::ElementsAre(1, 16));
  EXPECT_THAT(options->chart_files, testing::ElementsAre("a.svg", "b.png"));
  EXPECT_GT(options->requests, 1'000'000'000u);  // a duration without -n is not cut short
}

TEST(Options, that_make_no_sense_are_refused) {
  const std::pair<Words, std::string> cases[] = {
      {{"--nosuch"}, "--nosuch"},
      {{"-c", "0"}, "-c"},
      {{"-c", "1,x"}, "-c"},
      {{"-c", "1,2"}, "--compare"},
      {{"--chart", "a.svg"}, "--compare"},
      {{"--compare", "tcp", "--chart", "a.gif"}, ".svg and .png"},
      {{"--compare", "tcp,ftp"}, "ftp"},
      {{"--pin", "a"}, "--pin"},
      {{"--duration", "-1"}, "--duration"},
      {{"--compare", ""}, "--compare"},
      {{"-l", "--compare", "tcp"}, "-l"},
      {{"-I", "--compare", "tcp"}, "-I"},
      {{"-l", "--json", "x"}, "--json"},
      {{"--rate", "0"}, "--rate"},
      {{"--rate", "10", "-k", "0"}, "-k 0"},
      {{"--rate", "10", "-I"}, "-I"},
      {{"--mix", "get:9,set:1", "-t", "get"}, "-t"},
      {{"--mix", "get:9,set:1", "PING"}, "of your own"},
      {{"--keys-distribution", "zipf"}, "-r"},
      {{"--cluster", "-I"}, "-I"},
      {{"--cluster", "--compare", "tcp"}, "--compare"},
      {{"--cluster", "SET", "key", "value"}, "{tag}"},
      {{"--keys-distribution", "zipf:0", "-r", "10"}, "zipf:S"},
  };
  for (const auto& [arguments, hint] : cases) {
    const auto options = parse_options(arguments);
    ASSERT_FALSE(options) << testing::PrintToString(arguments);
    EXPECT_THAT(options.error().what, HasSubstr(hint));
  }
}

Comparison small_comparison() {
  Measured tcp;
  tcp.ops_per_s = 1000;
  tcp.p50_us = 50;
  tcp.ratio = 1;
  auto rdma = tcp;
  rdma.transport = client::Transport::rdma;
  rdma.ops_per_s = 12'000;
  rdma.p50_us = 4.25;
  rdma.ratio = 12;
  Comparison comparison;
  comparison.surroundings.cpu_model = "A \"CPU\"";
  comparison.surroundings.cpus = 2;
  comparison.surroundings.client_cpus = "1";
  comparison.data_bytes = 16;
  comparison.repeats = 3;
  comparison.threads = 1;
  comparison.baseline = client::Transport::tcp;
  comparison.cases = {{"GET", 1, 16, {tcp, rdma}}};
  return comparison;
}

TEST(ComparisonTable, shows_each_transport_with_units_and_ratio) {
  const auto table = as_table(small_comparison());
  EXPECT_THAT(table, HasSubstr("GET, 1 connection, pipeline 16"));
  EXPECT_THAT(table, HasSubstr("p99.9 us"));
  EXPECT_THAT(table, testing::ContainsRegex("rdma +12,000 +4\\.25.* 12\\.00x"));
}

TEST(ComparisonTable, warns_of_the_transport_that_was_measured_while_others_wanted_the_cpu) {
  auto comparison = small_comparison();
  comparison.cases[0].rows[1].cpu_wait_share = 0.1;
  EXPECT_THAT(as_table(comparison), Not(HasSubstr("warning")));
  comparison.cases[0].rows[1].cpu_wait_share = 0.234;
  EXPECT_THAT(as_table(comparison),
              HasSubstr("  warning: rdma: this program waited for a CPU for 23 % of the time"));
  EXPECT_THAT(as_json(comparison), HasSubstr(R"("cpu_wait_share": 0.234)"));
}

TEST(ComparisonJson, escapes_text) {
  EXPECT_THAT(as_json(small_comparison()), HasSubstr(R"("cpu": "A \"CPU\"")"));
}

TEST(ChartScript, picks_the_terminal_by_the_files_name_and_holds_the_figures) {
  EXPECT_THAT(chart_script(small_comparison(), "x.png"), HasSubstr("set terminal pngcairo"));
  const auto svg = chart_script(small_comparison(), "it's.svg");
  EXPECT_THAT(svg, HasSubstr("set terminal svg"));
  EXPECT_THAT(svg, HasSubstr("set output 'it''s.svg'"));
  EXPECT_THAT(svg, HasSubstr("16 byte values, median of 3 rounds"));
  EXPECT_THAT(svg, HasSubstr("2 x A \\\"CPU\\\"; client on CPU 1, server on CPU ?"));
  EXPECT_THAT(svg, HasSubstr("12000.000 \"12k\""));
}

}  // namespace
}  // namespace weir::benchmark
