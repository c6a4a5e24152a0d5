// Answers clients that ask for a cluster or modules: there are none. The replies are those of a Redis without
// them, by which clients recognize this.
#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"

namespace weir::kv {

namespace {

void no_cluster(const Call& call) { call.reply.error("ERR This instance has cluster support disabled"); }
void no_modules(const Call& call) { call.reply.array(0); }
void never_allowed(const Call&) {}  // flag::needs_permission

void module_help(const Call& call) {
  reply_help(call, {
                       "LIST",
                       "    Return a list of loaded modules.",
                       "LOAD <path> [<arg> ...]",
                       "    Load a module library from <path>, passing to it any optional arguments.",
                       "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
                       "    Load a module library from <path>, while passing it module configurations and "
                       "optional arguments.",
                       "UNLOAD <name>",
                       "    Unload a module.",
                   });
}

constexpr Command of_cluster(std::string_view name, int arity, std::uint32_t flags) {
  return {name, arity, flags, 0, 0, 0, no_cluster, "cluster", "Is for clusters.", {}, "cluster"};
}
constexpr Command of_module(std::string_view name, int arity, std::uint32_t flags, void (*run)(const Call&),
                            std::string_view summary) {
  return {name, arity, flags, 0, 0, 0, run, "server", summary, {}, "module"};
}

}  // namespace

std::span<const Command> absent_feature_commands() {
  using namespace flag;
  constexpr std::uint32_t changes = admin | stale | no_async_loading;
  constexpr std::uint32_t loads = admin | noscript | no_async_loading | needs_permission;
  static constexpr Command cluster_subcommands[] = {
      of_cluster("addslots", -3, changes),
      of_cluster("addslotsrange", -4, changes),
      of_cluster("bumpepoch", 2, changes),
      of_cluster("count-failure-reports", 3, admin | stale),
      of_cluster("countkeysinslot", 3, stale),
      of_cluster("delslots", -3, changes),
      of_cluster("delslotsrange", -4, changes),
      of_cluster("failover", -2, changes),
      of_cluster("flushslots", 2, changes),
      of_cluster("forget", 3, changes),
      of_cluster("getkeysinslot", 4, stale),
      of_cluster("help", 2, loading | stale),
      of_cluster("info", 2, stale),
      of_cluster("keyslot", 3, stale),
      of_cluster("links", 2, stale),
      of_cluster("meet", -4, changes),
      of_cluster("myid", 2, stale),
      of_cluster("nodes", 2, stale),
      of_cluster("replicas", 3, admin | stale),
      of_cluster("replicate", 3, changes),
      of_cluster("reset", -2, admin | noscript | stale),
      of_cluster("saveconfig", 2, changes),
      of_cluster("set-config-epoch", 3, changes),
      of_cluster("setslot", -4, changes),
      of_cluster("shards", 2, stale),
      of_cluster("slaves", 3, admin | stale),
      of_cluster("slots", 2, stale),
  };
  static constexpr Command module_subcommands[] = {
      of_module("help", 2, loading | stale, module_help, "Explains MODULE."),
      of_module("list", 2, admin | noscript, no_modules, "Lists no modules."),
      of_module("load", -3, loads, never_allowed, "Is not allowed."),
      of_module("loadex", -3, loads, never_allowed, "Is not allowed."),
      of_module("unload", 3, loads, never_allowed, "Is not allowed."),
  };
  static constexpr Command commands[] = {
      {"cluster", -2, 0, 0, 0, 0, nullptr, "cluster", "Is for clusters.", cluster_subcommands},
      {"asking", 1, fast, 0, 0, 0, no_cluster, "cluster", "Is for clusters."},
      {"readonly", 1, loading | stale | fast, 0, 0, 0, no_cluster, "cluster", "Is for clusters."},
      {"readwrite", 1, loading | stale | fast, 0, 0, 0, no_cluster, "cluster", "Is for clusters."},
      {"module", -2, 0, 0, 0, 0, nullptr, "server", "Says that there are no modules.", module_subcommands},
  };
  return commands;
}

}  // namespace weir::kv
