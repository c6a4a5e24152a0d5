#include "cli/benchmark/report.hpp"

#include <fmt/format.h>

namespace weir::benchmark {
namespace {

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

std::string as_csv(const Workload& workload, const LoadResult& result) {
  const auto& latency = result.latency;
  // More digits than redis-benchmark's three, because over RDMA a request takes a few microseconds.
  return fmt::format(
      "\"{}\",\"{:.2f}\",\"{:.5f}\",\"{:.5f}\",\"{:.5f}\",\"{:.5f}\",\"{:.5f}\",\"{:.5f}\",\"{:.5f}\"\n",
      workload.title, result.requests_per_second(), latency.mean_ns() / 1e6, ms(latency.min_ns()),
      ms(latency.percentile_ns(50)), ms(latency.percentile_ns(95)), ms(latency.percentile_ns(99)),
      ms(latency.max_ns()), ms(latency.percentile_ns(99.9)));
}

std::string distribution(const LatencyHistogram& latency, int precision) {
  std::string text = "Latency by percentile distribution:\n";
  double last = 0;
  for (double left = 100; left > 0.0005; left /= 2) {
    const double percent = 100 - left;
    const double value = ms(latency.percentile_ns(percent));
    if (value == last && percent > 0) continue;
    last = value;
    text += fmt::format("{:.3f}% <= {:.{}f} milliseconds\n", percent, value, precision);
  }
  return text + fmt::format("100.000% <= {:.{}f} milliseconds\n\n", ms(latency.max_ns()), precision);
}

std::string open_loop_text(const LoadPlan& plan, const LoadResult& result, int precision) {
  if (!plan.rate_per_s) return {};
  const auto& lateness = result.lateness;
  auto text = fmt::format(
      "  open loop at {:.0f}/s: latencies count from when a request was due\n  achieved rate: {:.2f}/s\n"
      "  sent late by this program (msec): p50 {:.{}f}, p99 {:.{}f}, max {:.{}f}\n",
      *plan.rate_per_s, result.requests_per_second(), ms(lateness.percentile_ns(50)), precision,
      ms(lateness.percentile_ns(99)), precision, ms(lateness.max_ns()), precision);
  if (result.unsent)
    text +=
        fmt::format("  due but not sent by the end: {}, counted with the time they waited\n", result.unsent);
  return text;
}

std::string as_text(const Options& options, const Workload& workload, const LoadPlan& plan,
                    const LoadResult& result) {
  const auto& latency = result.latency;
  auto text = fmt::format(
      "====== {} ======\n  {} requests completed in {:.2f} seconds\n  {} parallel clients\n  {} bytes "
      "payload\n"
      "  keep alive: {}\n  transport: {}\n  pipeline: {}\n  threads: {}\n  client CPU: {:.2f} microseconds a "
      "request\n",
      workload.title, result.requests, result.elapsed_s, plan.clients, options.data_bytes,
      plan.keep_alive ? 1 : 0, client::name_of(plan.endpoint.transport), plan.pipeline, plan.threads,
      static_cast<double>(result.cpu_ns) / 1e3 /
          static_cast<double>(std::max<std::uint64_t>(1, result.requests)));
  for (const auto& node : result.nodes)
    text +=
        fmt::format("  node {}: {} requests, {} redirected\n", node.address, node.answered, node.redirected);
  text += open_loop_text(plan, result, options.precision);
  for (const auto& warning : warnings(plan, result)) text += "  warning: " + warning + "\n";
  text += "\n";
  text += distribution(latency, options.precision);
  text +=
      fmt::format("Summary:\n  throughput summary: {:.2f} requests per second\n  latency summary (msec):\n  ",
                  result.requests_per_second());
  const std::pair<const char*, double> columns[] = {
      {"avg", latency.mean_ns() / 1e6},           {"min", ms(latency.min_ns())},
      {"p50", ms(latency.percentile_ns(50))},     {"p90", ms(latency.percentile_ns(90))},
      {"p95", ms(latency.percentile_ns(95))},     {"p99", ms(latency.percentile_ns(99))},
      {"p99.9", ms(latency.percentile_ns(99.9))}, {"max", ms(latency.max_ns())}};
  for (const auto& [name, value] : columns) text += fmt::format(" {:>9}", name);
  text += "\n  ";
  for (const auto& [name, value] : columns) text += fmt::format(" {:>9.{}f}", value, options.precision);
  return text + "\n\n";
}

}  // namespace

std::string csv_header() {
  return "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\","
         "\"p99_latency_ms\",\"max_latency_ms\",\"p99.9_latency_ms\"\n";
}

std::optional<std::string> warning_of_cpu_wait(double share) {
  constexpr double usual = 0.1;
  if (share <= usual) return std::nullopt;
  return fmt::format(
      "this program waited for a CPU for {:.0f} % of the time, as others wanted it: the latencies are not "
      "the server's alone; measure when the machine is idle, or give this program a CPU of its own (--pin)",
      100 * share);
}

std::vector<std::string> warnings(const LoadPlan& plan, const LoadResult& result) {
  std::vector<std::string> found;
  if (result.requests > 0 && result.nulls == result.requests)
    found.emplace_back(
        "every reply says that there is nothing: write the keys first (-t set with the same -r), or ask for "
        "others");
  if (auto waited = warning_of_cpu_wait(result.cpu_wait_share())) found.push_back(std::move(*waited));
  if (!plan.rate_per_s) return found;
  constexpr std::uint64_t most_late_ns = 1'000'000;
  const auto late_ns = result.lateness.percentile_ns(99);
  const double busy = static_cast<double>(result.cpu_ns) / 1e9 / std::max(result.elapsed_s, 1e-9) /
                      static_cast<double>(std::min(plan.threads, plan.clients));
  if (late_ns > most_late_ns)
    found.push_back(fmt::format(
        "this program was late itself (p99 {:.3f} msec): the latencies are not the server's alone; "
        "give it a CPU of its own (--pin), --threads, or a lower --rate",
        ms(late_ns)));
  else if (busy > 0.95 && result.requests_per_second() < 0.99 * *plan.rate_per_s)
    found.push_back(
        fmt::format("this program was busy for {:.0f} % of the time: it may be what holds the rate down; "
                    "more --threads may help",
                    100 * busy));
  return found;
}

std::string format_result(const Options& options, const Workload& workload, const LoadPlan& plan,
                          const LoadResult& result) {
  switch (options.output) {
    case Output::text:
      return as_text(options, workload, plan, result);
    case Output::quiet:
      return fmt::format("{}: {:.2f} requests per second, p50={:.{}f} msec\n", workload.title,
                         result.requests_per_second(), ms(result.latency.percentile_ns(50)),
                         options.precision);
    case Output::csv:
      return as_csv(workload, result);
  }
  return {};
}

}  // namespace weir::benchmark
