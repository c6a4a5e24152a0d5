#include "kv/server/refusal.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kv/acl/permission.hpp"
#include "kv/clients/access_control.hpp"
#include "kv/core/kept.hpp"
#include "kv/replication/replication.hpp"
#include "kv/scripts/scripts.hpp"

namespace weir::kv {

namespace {

using Error = std::optional<std::string>;

bool allowed_while_subscribed(const Command& command) {
  using namespace std::string_view_literals;
  for (auto name : {"ping"sv, "subscribe"sv, "ssubscribe"sv, "sunsubscribe"sv, "psubscribe"sv,
                    "unsubscribe"sv, "punsubscribe"sv, "quit"sv, "reset"sv}) {
    if (command.name == name && command.container.empty()) return true;
  }
  return false;
}

// A queue may grow without bound, so a command to be queued needs room. EXEC needs room if one of
// the queued commands does.
bool needs_room(const Client& client, const Command& command) {
  using namespace std::string_view_literals;
  if (command.has(flag::denyoom)) return true;
  if (!client.transaction.open) return false;
  if (command.name == "exec") {
    return std::ranges::any_of(client.transaction.queued, [](const Transaction::Queued& queued) {
      return queued.command->has(flag::denyoom);
    });
  }
  return command.name != "discard"sv && command.name != "quit"sv && command.name != "reset"sv;
}

// Whether the command has the flag, and of EXEC all queued commands.
bool all_have(const Client& client, const Command& command, std::uint32_t wanted) {
  if (!command.has(wanted)) return false;
  return command.name != "exec" || std::ranges::all_of(client.transaction.queued, [&](const auto& queued) {
           return queued.command->has(wanted);
         });
}

// Scripts are checked for each of their commands.
bool would_change_data(const Client& client, const Command& command) {
  if (command.has(flag::write)) return true;
  return command.name == "exec" && command.container.empty() &&
         std::ranges::any_of(client.transaction.queued, [](const Transaction::Queued& queued) {
           return queued.command->has(flag::write);
         });
}

// By the enable-*-command settings; modules are never loaded here.
bool permits(const Settings& settings, const Command& command, const Client& client) {
  constexpr int yes = 1;
  constexpr int local = 2;
  if (command.name != "debug") return false;
  return settings.enable_debug_command == yes ||
         (settings.enable_debug_command == local && client.connection().local());
}

Error wrong_arity(const Request& r) {
  if (r.command.takes(r.words.size()) && r.command.run != nullptr) return {};
  return "ERR wrong number of arguments for '" + r.command.full_name() + "' command";
}

Error not_enabled(const Request& r) {
  if (!r.command.has(flag::needs_permission) || permits(r.server.settings, r.command, r.client)) return {};
  const std::string_view name = r.command.container.empty() ? r.command.name : r.command.container;
  return "ERR " + in_capitals(name) + " command not allowed. If the enable-" + std::string(name) +
         "-command option is set to \"local\", you can run it from a local connection, otherwise you "
         "need to set this option in the configuration file, and then restart the server.";
}

Error not_authenticated(const Request& r) {
  if (!r.client.authenticated() && !r.server.access.asks_for_password()) r.client.let_in();
  if (r.client.authenticated() || r.command.has(flag::no_auth)) return {};
  return "NOAUTH Authentication required.";
}

Error inside_transaction(const Request& r) {
  if (!r.client.transaction.open || !r.command.has(flag::no_multi)) return {};
  return "ERR Command not allowed inside a transaction";
}

Error not_permitted(const Request& r) {
  if (r.client.user->may_do_everything()) return {};
  const acl::Context context = r.client.transaction.open ? acl::Context::multi : acl::Context::toplevel;
  const auto denied = r.server.access.refusal(r.client, r.command, r.words, context);
  if (!denied) return {};
  return denial_text(*denied, r.command);
}

Error script_runs(const Request& r) {
  if (!r.server.script_suspended || r.server.scripts->others_wait() || runs_beside_script(r.command, r.words))
    return {};
  return std::string(r.server.scripts->busy_text());
}

Error no_memory(const Request& r) {
  // Keys evicted here are gone before the command begins, so clients that cache them are told first.
  Client* const answered = std::exchange(r.server.serving, nullptr);
  const bool fits = r.server.settings.maxmemory == 0 || r.server.script_suspended || r.server.make_room();
  r.server.serving = answered;
  if (fits || !needs_room(r.client, r.command)) return {};
  return "OOM command not allowed when used memory > 'maxmemory'.";
}

Error no_snapshot(const Request& r) {
  if (!r.command.has(flag::write)) return {};
  const std::string_view why = r.server.snapshot_refusal();
  return why.empty() ? Error() : std::string(why);
}

Error not_logged(const Request& r) {
  const std::string& why = aof::refusal(*r.server.append_only);
  if (why.empty() || !(would_change_data(r.client, r.command) || r.command.name == "ping")) return {};
  return why;
}

// With min-replicas-to-write the refusal counts the replicas, so it is asked only for what writes.
Error not_replicated(const Request& r) {
  if (!would_change_data(r.client, r.command)) return {};
  const std::string_view why = r.server.write_refusal();
  return why.empty() ? Error() : std::string(why);
}

Error stale(const Request& r) {
  if (!r.server.replication->refuses_stale_reads() || all_have(r.client, r.command, flag::stale)) return {};
  return "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
}

Error loading(const Request& r) {
  if (!r.server.loading || all_have(r.client, r.command, flag::loading)) return {};
  return "LOADING Redis is loading the dataset in memory";
}

// Redis counts monitors as replicas.
Error monitors(const Request& r) {
  if (!r.client.monitors || !r.command.has(flag::write | flag::readonly | flag::may_replicate)) return {};
  return "ERR Replica can't interact with the keyspace";
}

Error subscribed(const Request& r) {
  if (!r.client.only_pubsub() || allowed_while_subscribed(r.command)) return {};
  return "ERR Can't execute '" + r.command.full_name() +
         "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";
}

constexpr std::array<RefusalRule, 14> rules{{
    {"arity", wrong_arity},
    {"enabled", not_enabled},
    {"password", not_authenticated},
    {"transaction", inside_transaction},
    {"permission", not_permitted},
    {"script", script_runs},
    {"memory", no_memory},
    {"snapshot", no_snapshot},
    {"log", not_logged},
    {"replication", not_replicated},
    {"stale", stale},
    {"loading", loading},
    {"monitor", monitors},
    {"subscribed", subscribed},
}};

}  // namespace

bool runs_beside_script(const Command& command, Arguments words) {
  if (!command.has(flag::allow_busy)) return false;
  const auto lets_it_run = [](const Argument& word) {
    return is_word(word.text, "nosave") || is_word(word.text, "abort");
  };
  return command.name != "shutdown" || std::ranges::any_of(words.subspan(1), lets_it_run);
}

std::span<const RefusalRule> refusal_rules() { return rules; }

std::optional<std::string> refusal(const Request& request) {
  for (const RefusalRule& rule : rules) {
    if (auto error = rule.error(request)) return error;
  }
  return {};
}

}  // namespace weir::kv
