#include "cli/weir/rpc/rpc_stats.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "cli/weir/command.hpp"
#include "cli/weir/rpc/rpc_stream.hpp"
#include "rpc/json/stats_json.hpp"
#include "rpc/method_stats.hpp"

namespace weir::command {

namespace {

using Reports = std::vector<rpc::MethodReport>;

std::string duration(double us) {
  char text[32];
  if (us < 1000)
    std::snprintf(text, sizeof text, "%.0f us", us);
  else if (us < 1e6)
    std::snprintf(text, sizeof text, "%.1f ms", us / 1e3);
  else
    std::snprintf(text, sizeof text, "%.2f s", us / 1e6);
  return text;
}

// How much smaller compression made the bytes: "3.1x", or "-" if nothing was compressed.
std::string ratio(const rpc::CompressionCounts& counts) {
  if (counts.bytes_after == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1fx",
                static_cast<double>(counts.bytes_before) / static_cast<double>(counts.bytes_after));
  return text;
}

void print_table(const Reports& reports) {
  int width = 8;
  for (const auto& one : reports)
    width = std::max(width, static_cast<int>(std::min<std::size_t>(one.name.size(), 60)));
  const bool packed = std::ranges::any_of(
      reports, [](const auto& one) { return one.packed_in.bodies + one.packed_out.bodies > 0; });
  std::printf("%-*s %12s %9s %9s %10s %10s %10s %12s %12s%s\n", width, "FUNCTION", "CALLS", "FAILED",
              "RUNNING", "MEAN", "P50", "P99", "BYTES IN", "BYTES OUT", packed ? " PACKED IN       OUT" : "");
  for (const auto& one : reports) {
    const double mean =
        one.calls == 0 ? 0 : static_cast<double>(one.total_ns) * 1e-3 / static_cast<double>(one.calls);
    std::printf("%-*s %12" PRIu64 " %9" PRIu64 " %9" PRIu32 " %10s %10s %10s %12" PRIu64 " %12" PRIu64, width,
                one.name.c_str(), one.calls, one.failures, one.in_flight, duration(mean).c_str(),
                duration(quantile_us(one, 0.5)).c_str(), duration(quantile_us(one, 0.99)).c_str(),
                one.bytes_in, one.bytes_out);
    if (packed) std::printf(" %9s %9s", ratio(one.packed_in).c_str(), ratio(one.packed_out).c_str());
    std::printf("\n");
  }
}

}  // namespace

asio::awaitable<int> show_stats(rpc::Client& client, StatsFormat format) {
  const auto reports = co_await client.call_by_name<Reports>(rpc::stats_method);
  if (!reports && reports.error().code == rpc::Errc::unknown_method)
    co_return complain("rpc", "the server counts nothing: it was started without ServerOptions::stats", 1);
  if (!reports) co_return complain("rpc", said(reports.error()), 1);
  if (format == StatsFormat::table) print_table(*reports);
  if (format == StatsFormat::json)
    std::printf("%s\n", rpc::json::stats_as_json(*reports, rpc::json::Layout::for_people).c_str());
  if (format == StatsFormat::prometheus) std::fputs(rpc::prometheus_text(*reports).c_str(), stdout);
  co_return 0;
}

}  // namespace weir::command
