#include "rpc/stats_keeper.hpp"

#include <map>
#include <mutex>
#include <unordered_map>

namespace weir::rpc {

class StatsKeeper::Shard final : public ServerInterceptor {
 public:
  explicit Shard(bool threads) : threads_(threads) {}

  Result<void> before(Context& context) override {
    const auto lock = hold();
    ++by_method_[context.method()].in_flight;
    return {};
  }
  void after(Context& context, const CallEnd& end) override {
    const auto lock = hold();
    MethodStats& stats = by_method_[context.method()];
    --stats.in_flight;
    stats.failures += end.error != nullptr ? 1 : 0;
    stats.bytes_in += end.request_bytes;
    stats.bytes_out += end.reply_bytes;
    stats.packed_in += end.request_packed;
    stats.packed_out += end.reply_packed;
    stats.latency.add(end.latency);
  }
  void add_to(std::map<std::string_view, MethodReport>& all) const {
    const auto lock = hold();
    for (const auto& [name, stats] : by_method_) {
      MethodReport mine = report(std::string(name), stats);
      const auto [place, first] = all.try_emplace(name);
      first ? void(place->second = std::move(mine)) : add(place->second, mine);
    }
  }

 private:
  std::unique_lock<std::mutex> hold() const {
    return threads_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

  const bool threads_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, MethodStats> by_method_;  // the registry owns the names
};

StatsKeeper::StatsKeeper(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) shards_.push_back(std::make_shared<Shard>(threads > 1));
}
StatsKeeper::~StatsKeeper() = default;

std::shared_ptr<ServerInterceptor> StatsKeeper::shard(std::size_t thread) const { return shards_[thread]; }

std::vector<MethodReport> StatsKeeper::reports() const {
  std::map<std::string_view, MethodReport> by_name;
  for (const auto& shard : shards_) shard->add_to(by_name);
  std::vector<MethodReport> all;
  all.reserve(by_name.size());
  for (auto& [name, one] : by_name) all.push_back(std::move(one));
  return all;
}

namespace {
Result<void> reply_with_stats(void* object, Context&, std::span<const std::byte>, ReplyBody& reply) {
  return write_result<MessagePack>(static_cast<const StatsKeeper*>(object)->reports(), reply);
}
}  // namespace

Registered StatsKeeper::method() {
  Registered row;
  row.name = stats_method;
  row.schema = numbered_schema(
      "() -> [MethodReport{name: str, calls: u64, failures: u64, in_flight: u32, bytes_in: u64, bytes_out: "
      "u64, total_ns: u64, latency: [u64], packed_in: CompressionCounts{bodies: u64, bytes_before: u64, "
      "bytes_after: u64}, packed_out: CompressionCounts{bodies: u64, bytes_before: u64, bytes_after: u64}, "
      "latency_fine: [u64]}]");
  row.object = this;
  row.now = reply_with_stats;
  return row;
}

}  // namespace weir::rpc
