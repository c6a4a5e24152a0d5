// What clients ask that expect replicas, a cluster or modules: a server that has none of them says so as
// Redis does, by which they tell what they talk to.
#include <limits>

#include "kv/commands/command.hpp"
#include "kv/number.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

// No replica will ever confirm a write, so whoever asks for one waits until the time is over.
void wait(const Call& call) {
  std::int64_t replicas = 0;
  if (!call.integer(1, replicas)) return;
  const auto ms = parse_int(call[2]);
  if (!ms) return call.reply.error("ERR timeout is not an integer or out of range");
  if (*ms < 0) return call.reply.error("ERR timeout is negative");
  if (*ms > std::numeric_limits<std::int64_t>::max() - call.now_ms) {
    return call.reply.error("ERR timeout is out of range");
  }
  if (replicas <= 0 || call.client.in_exec) return call.reply.integer(0);
  call.server.wait_for(call, {}, *ms, NullForm::single);
}

void no_cluster(const Call& call) { call.reply.error("ERR This instance has cluster support disabled"); }
void no_modules(const Call& call) { call.reply.array(0); }

}  // namespace

std::span<const Command> standalone_commands() {
  using namespace flag;
  static constexpr Command cluster_subcommands[] = {
      {"help", 2, loading | stale, 0, 0, 0, no_cluster, "cluster", "Is for clusters.", {}, "cluster"},
      {"info", 2, stale, 0, 0, 0, no_cluster, "cluster", "Is for clusters.", {}, "cluster"},
      {"keyslot", 3, stale, 0, 0, 0, no_cluster, "cluster", "Is for clusters.", {}, "cluster"},
      {"myid", 2, stale, 0, 0, 0, no_cluster, "cluster", "Is for clusters.", {}, "cluster"},
      {"nodes", 2, stale, 0, 0, 0, no_cluster, "cluster", "Is for clusters.", {}, "cluster"},
      {"shards", 2, stale, 0, 0, 0, no_cluster, "cluster", "Is for clusters.", {}, "cluster"},
      {"slots", 2, stale, 0, 0, 0, no_cluster, "cluster", "Is for clusters.", {}, "cluster"},
  };
  static constexpr Command module_subcommands[] = {
      {"list", 2, admin | noscript, 0, 0, 0, no_modules, "server", "Lists no modules.", {}, "module"},
  };
  static constexpr Command commands[] = {
      {"wait", 3, noscript, 0, 0, 0, wait, "generic", "Waits for replicas, of which there are none."},
      {"cluster", -2, 0, 0, 0, 0, nullptr, "cluster", "Is for clusters.", cluster_subcommands},
      {"asking", 1, fast, 0, 0, 0, no_cluster, "cluster", "Is for clusters."},
      {"readonly", 1, loading | stale | fast, 0, 0, 0, no_cluster, "cluster", "Is for clusters."},
      {"readwrite", 1, loading | stale | fast, 0, 0, 0, no_cluster, "cluster", "Is for clusters."},
      {"module", -2, 0, 0, 0, 0, nullptr, "server", "Says that there are no modules.", module_subcommands},
  };
  return commands;
}

}  // namespace weir::kv
