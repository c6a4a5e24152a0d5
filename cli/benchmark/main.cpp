// weir-benchmark: measures a Redis-protocol server over every available transport.
#include <fmt/core.h>
#include <time.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <system_error>

#include "cli/benchmark/chart.hpp"
#include "cli/benchmark/compare.hpp"
#include "cli/benchmark/idle.hpp"
#include "cli/benchmark/json_file.hpp"
#include "cli/benchmark/plan.hpp"
#include "cli/benchmark/progress_line.hpp"
#include "cli/benchmark/report.hpp"
#include "cli/client/standard_output.hpp"
#include "cli/json_text.hpp"
#include "screen/terminal.hpp"

namespace weir::benchmark {
namespace {

using client::Result;

std::string test_as_json(const Workload& workload, const LoadPlan& plan, const LoadResult& result) {
  const auto us = [&](double percent) {
    return static_cast<double>(result.latency.percentile_ns(percent)) / 1e3;
  };
  JsonText json;
  json.begin_object().key("test").text(workload.title);
  json.key("transport").text(name_of(plan.endpoint.transport)).key("connections").number(plan.clients);
  json.key("pipeline").number(plan.pipeline).key("requests").number(result.requests);
  json.key("seconds").number(result.elapsed_s, 6).key("ops_per_s").number(result.requests_per_second(), 1);
  json.key("mean_us").number(result.latency.mean_ns() / 1e3, 3).key("p50_us").number(us(50), 3);
  json.key("p90_us").number(us(90), 3).key("p99_us").number(us(99), 3).key("p99_9_us").number(us(99.9), 3);
  json.key("max_us").number(us(100), 3).key("null_replies").number(result.nulls);
  if (plan.rate_per_s) {
    const auto late_us = [&](double percent) {
      return static_cast<double>(result.lateness.percentile_ns(percent)) / 1e3;
    };
    json.key("open_loop").begin_object().key("target_per_s").number(*plan.rate_per_s, 1);
    json.key("achieved_per_s").number(result.requests_per_second(), 1).key("unsent").number(result.unsent);
    json.key("late_p50_us").number(late_us(50), 3).key("late_p99_us").number(late_us(99), 3);
    json.key("late_max_us").number(late_us(100), 3).end();
  }
  if (!result.nodes.empty()) {
    json.key("nodes").begin_array();
    for (const auto& node : result.nodes) {
      json.begin_object().key("address").text(node.address).key("requests").number(node.answered);
      json.key("redirected").number(node.redirected).end();
    }
    json.end();
  }
  json.key("warnings").begin_array();
  for (const auto& warning : warnings(plan, result)) json.text(warning);
  return json.end().end().take();
}

// Set by Ctrl-C: the results so far are printed. A later Ctrl-C ends the program at once.
std::atomic<bool> interrupted{false};
std::atomic<time_t> first_interrupt_s{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<time_t>::is_always_lock_free,
              "a signal handler sets them");
constexpr int interrupted_status = 130;  // as a shell reports a program that SIGINT ended

// Calls only async-signal-safe functions. timeout(1) signals its child and then the child's group, so two
// signals in quick succession count as one.
void note_interrupt(int signal) {
  constexpr time_t same_wish_s = 1;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  time_t first_s = 0;  // two threads may get a signal at once: one is first
  if (first_interrupt_s.compare_exchange_strong(first_s, now.tv_sec)) {
    interrupted.store(true, std::memory_order_relaxed);
  } else if (now.tv_sec - first_s > same_wish_s) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

void note_interrupts() {
  struct sigaction note_it{};
  note_it.sa_handler = note_interrupt;
  note_it.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &note_it, nullptr);
}

Result<void> run_tests(const Options& options, const JsonFile& json_file) {
  auto workloads = workloads_of(options);
  if (!workloads) return std::unexpected(std::move(workloads.error()));
  ProgressLine progress;
  std::string json;
  if (options.output == Output::csv) fmt::print("{}", csv_header());
  auto plan = plan_for(options, options.server.endpoint(), interrupted);
  if (options.cluster) {
    auto spread = spread_over_cluster(std::move(plan));
    if (!spread) return std::unexpected(std::move(spread.error()));
    plan = std::move(*spread);
  }
  for (std::size_t next = 0; next < workloads->size();
       next = options.loop ? (next + 1) % workloads->size() : next + 1) {
    const auto& workload = (*workloads)[next];
    progress.begin(workload.title);
    auto result = run_load(plan, workload, &progress);
    progress.clear();
    if (!result) return std::unexpected(std::move(result.error()));
    if (interrupted && result->requests == 0) break;
    if (options.json_file != "-") fmt::print("{}", format_result(options, workload, plan, *result));
    std::fflush(stdout);
    if (options.output != Output::text || options.json_file == "-")
      for (const auto& warning : warnings(plan, *result))
        fmt::print(stderr, "weir-benchmark: warning: {}: {}\n", workload.title, warning);
    if (!options.json_file.empty())
      json += (json.empty() ? "\n  " : ",\n  ") + test_as_json(workload, plan, *result);
    if (interrupted) break;
  }
  return json_file.write("[" + json + "\n]\n");
}

Result<void> run_comparison(const Options& options, const JsonFile& json_file) {
  ProgressLine progress;
  auto comparison = compare(options, progress, interrupted);
  progress.clear();
  if (!comparison) return std::unexpected(std::move(comparison.error()));
  if (options.json_file != "-") fmt::print("{}", as_table(*comparison));
  if (auto written = json_file.write(as_json(*comparison)); !written) return written;
  if (comparison->cases.empty()) return {};  // interrupted before there was anything to draw
  for (const auto& file : options.chart_files)
    if (auto drawn = draw_chart(*comparison, file); !drawn) return drawn;
  return {};
}

Result<void> measure(const Options& options) {
  if (options.idle) return hold_idle_connections(plan_for(options, options.server.endpoint(), interrupted));
  const auto json_file = JsonFile::open(options.json_file);
  if (!json_file) return std::unexpected(json_file.error());
  for (const auto& chart : options.chart_files)
    if (auto writable = can_draw_into(chart); !writable) return writable;
  return options.compare.empty() ? run_tests(options, *json_file) : run_comparison(options, *json_file);
}

int run(std::span<const std::string> arguments) {
  auto options = parse_options(arguments);
  if (!options) {
    fmt::print(stderr, "{}", screen::message(client::usage_complaint("weir-benchmark", options.error())));
    return 1;
  }
  if (options->help) {
    screen::print_wrapped(stdout, help_text());
    return 0;
  }
  if (options->version) {
    fmt::print("weir-benchmark {}\n", WEIR_VERSION);
    return 0;
  }
  if (options->last_argument_from_stdin)
    options->command.emplace_back(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  const char* const password = std::getenv("WEIRCLI_AUTH");
  options->server.take_environment({password ? password : std::getenv("REDISCLI_AUTH"),
                                    std::getenv("WEIR_RDMA_PROVIDER"), std::getenv("LD_LIBRARY_PATH")});
  note_interrupts();
  const auto done = measure(*options);
  if (done && !interrupted) return 0;
  std::fflush(stdout);
  if (done) {
    if (!options->idle)
      fmt::print(stderr, "weir-benchmark: interrupted; that is what was measured until then\n");
    return interrupted_status;
  }
  fmt::print(stderr, "{}\n", screen::message("weir-benchmark: " + done.error().what));
  return 1;
}

}  // namespace
}  // namespace weir::benchmark

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  try {
    return weir::client::output_arrived("weir-benchmark", weir::benchmark::run(arguments));
  } catch (const std::system_error& problem) {  // from fmt::print
    std::fprintf(stderr, "weir-benchmark: %s\n", problem.what());
    return 1;
  }
}
