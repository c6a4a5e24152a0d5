// A comparison as text for people and for programs.
#include <fmt/format.h>

#include <utility>

#include "cli/benchmark/compare.hpp"
#include "cli/benchmark/report.hpp"
#include "cli/json_text.hpp"

namespace weir::benchmark {
namespace {

// 1234567 -> 1,234,567
std::string grouped(double number) {
  auto digits = fmt::format("{:.0f}", number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

// Latencies span four orders of magnitude, so three significant digits are enough.
std::string micros(double us) {
  return us < 10    ? fmt::format("{:.2f}", us)
         : us < 100 ? fmt::format("{:.1f}", us)
                    : fmt::format("{:.0f}", us);
}

std::string heading(const Comparison& comparison) {
  const auto& at = comparison.surroundings;
  auto text = fmt::format("{} x {}, {}; ", at.cpus, at.cpu_model, at.kernel);
  text += fmt::format("client: {} thread{} on CPU {}; server: {}", comparison.threads,
                      comparison.threads == 1 ? "" : "s", at.client_cpus,
                      at.server.empty() ? "unknown" : at.server);
  if (!at.server_cpus.empty()) text += " on CPU " + at.server_cpus;
  if (!at.rdma.empty()) text += "\n" + at.rdma;
  if (comparison.rate_per_s)
    text += fmt::format("\nopen loop at {}/s: latencies count from when a request was due",
                        comparison.rate_per_s);
  return text + fmt::format("\n{} bytes a value; median of {} round{}, transports alternating\n",
                            comparison.data_bytes, comparison.repeats, comparison.repeats == 1 ? "" : "s");
}

}  // namespace

std::string as_table(const Comparison& comparison) {
  auto text = heading(comparison);
  for (const auto& measured : comparison.cases) {
    text += fmt::format("\n{}\n  {:<10} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>13}\n", title_of(measured),
                        "transport", "ops/s", "p50 us", "p90 us", "p99 us", "p99.9 us", "max us",
                        "ops/s to " + std::string(name_of(comparison.baseline)));
    for (const auto& row : measured.rows)
      text +=
          fmt::format("  {:<10} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12.2f}x\n", name_of(row.transport),
                      grouped(row.ops_per_s), micros(row.p50_us), micros(row.p90_us), micros(row.p99_us),
                      micros(row.p999_us), micros(row.max_us), row.ratio);
    for (const auto& row : measured.rows)
      if (const auto waited = warning_of_cpu_wait(row.cpu_wait_share))
        text += fmt::format("  warning: {}: {}\n", name_of(row.transport), *waited);
  }
  return text;
}

namespace {

void write_row(JsonText& json, const Measured& row) {
  json.line(6).begin_object().key("transport").text(name_of(row.transport));
  const std::pair<const char*, double> figures[] = {{"p50_us", row.p50_us},
                                                    {"p90_us", row.p90_us},
                                                    {"p99_us", row.p99_us},
                                                    {"p99_9_us", row.p999_us},
                                                    {"max_us", row.max_us},
                                                    {"client_cpu_us_per_op", row.client_cpu_us},
                                                    {"cpu_wait_share", row.cpu_wait_share},
                                                    {"ratio", row.ratio}};
  json.key("ops_per_s").number(row.ops_per_s, 1);
  for (const auto& [name, value] : figures) json.key(name).number(value, 3);
  json.key("rounds_ops_per_s").begin_array();
  for (const double round : row.rounds_ops_per_s) json.number(round, 1);
  json.end().end();
}

}  // namespace

std::string as_json(const Comparison& comparison) {
  const auto& at = comparison.surroundings;
  JsonText json;
  json.begin_object().line(2).key("machine").begin_object().key("cpu").text(at.cpu_model);
  json.key("cpus").number(at.cpus).key("kernel").text(at.kernel).end();
  json.line(2).key("placement").begin_object().key("client_cpus").text(at.client_cpus);
  json.key("client_threads").number(comparison.threads).key("server_cpus").text(at.server_cpus).end();
  json.line(2).key("server").text(at.server).line(2).key("rdma").text(at.rdma);
  json.line(2)
      .key("data_bytes")
      .number(comparison.data_bytes)
      .line(2)
      .key("rounds")
      .number(comparison.repeats);
  if (comparison.rate_per_s) json.line(2).key("target_per_s").number(comparison.rate_per_s);
  json.line(2).key("baseline").text(name_of(comparison.baseline)).line(2).key("cases").begin_array();
  for (const auto& measured : comparison.cases) {
    json.line(4).begin_object().key("test").text(measured.test).key("connections").number(measured.clients);
    json.key("pipeline").number(measured.pipeline).key("transports").begin_array();
    for (const auto& row : measured.rows) write_row(json, row);
    json.end().end();
  }
  return json.line(2).end().line(0).end().take() + "\n";
}

}  // namespace weir::benchmark
