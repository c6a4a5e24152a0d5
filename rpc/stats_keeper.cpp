#include "rpc/stats_keeper.hpp"

#include <algorithm>

namespace weir::rpc {

Result<void> StatsKeeper::before(Context& context) {
  ++by_method_[context.method()].in_flight;
  return {};
}

void StatsKeeper::after(Context& context, const CallEnd& end) {
  MethodStats& stats = by_method_[context.method()];
  --stats.in_flight;
  stats.failures += end.error != nullptr ? 1 : 0;
  stats.bytes_in += end.request_bytes;
  stats.bytes_out += end.reply_bytes;
  stats.latency.add(end.latency);
}

std::vector<MethodReport> StatsKeeper::reports() const {
  std::vector<MethodReport> all;
  all.reserve(by_method_.size());
  for (const auto& [name, stats] : by_method_) all.push_back(report(std::string(name), stats));
  std::ranges::sort(all, {}, &MethodReport::name);
  return all;
}

namespace {
Result<void> tell_stats(void* object, Context&, std::span<const std::byte>, ReplyBody& reply) {
  MessagePack::write(reply.begin(), static_cast<const StatsKeeper*>(object)->reports());
  return {};
}
}  // namespace

Registered StatsKeeper::method() {
  Registered row;
  row.name = stats_method;
  row.schema =
      "() -> [MethodReport{name: str, calls: u64, failures: u64, in_flight: u32, bytes_in: u64, bytes_out: "
      "u64, "
      "total_ns: u64, latency: [u64]}]";
  row.object = this;
  row.now = tell_stats;
  return row;
}

}  // namespace weir::rpc
