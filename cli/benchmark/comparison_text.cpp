// A comparison as people read it and as programs do.
#include <fmt/format.h>

#include "cli/benchmark/compare.hpp"
#include "cli/json_text.hpp"

namespace weir::benchmark {
namespace {

// 1234567 -> 1,234,567
std::string grouped(double number) {
  auto digits = fmt::format("{:.0f}", number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

// Latencies span four orders of magnitude: three significant digits are enough.
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
  }
  return text;
}

std::string as_json(const Comparison& comparison) {
  const auto& at = comparison.surroundings;
  auto text = fmt::format(
      "{{\n  \"machine\": {{\"cpu\": {}, \"cpus\": {}, \"kernel\": {}}},\n"
      "  \"placement\": {{\"client_cpus\": {}, \"client_threads\": {}, \"server_cpus\": {}}},\n  \"server\": "
      "{},\n"
      "  \"rdma\": {},\n"
      "  \"data_bytes\": {},\n  \"rounds\": {},\n  \"baseline\": {},\n  \"cases\": [",
      json_string(at.cpu_model), at.cpus, json_string(at.kernel), json_string(at.client_cpus),
      comparison.threads, json_string(at.server_cpus), json_string(at.server), json_string(at.rdma),
      comparison.data_bytes, comparison.repeats, json_string(name_of(comparison.baseline)));
  for (std::size_t i = 0; i < comparison.cases.size(); ++i) {
    const auto& measured = comparison.cases[i];
    text += fmt::format("{}\n    {{\"test\": {}, \"connections\": {}, \"pipeline\": {}, \"transports\": [",
                        i ? "," : "", json_string(measured.test), measured.clients, measured.pipeline);
    for (std::size_t k = 0; k < measured.rows.size(); ++k) {
      const auto& row = measured.rows[k];
      text += fmt::format(
          "{}\n      {{\"transport\": {}, \"ops_per_s\": {:.1f}, \"p50_us\": {:.3f}, \"p90_us\": {:.3f}, "
          "\"p99_us\": {:.3f}, \"p99_9_us\": {:.3f}, \"max_us\": {:.3f}, \"client_cpu_us_per_op\": {:.3f}, "
          "\"ratio\": {:.3f}, \"rounds_ops_per_s\": [{:.1f}]}}",
          k ? "," : "", json_string(name_of(row.transport)), row.ops_per_s, row.p50_us, row.p90_us,
          row.p99_us, row.p999_us, row.max_us, row.client_cpu_us, row.ratio,
          fmt::join(row.rounds_ops_per_s, ", "));
    }
    text += "]}";
  }
  return text + "\n  ]\n}\n";
}

}  // namespace weir::benchmark
