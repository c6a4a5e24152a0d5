// Transactions: MULTI, EXEC, DISCARD, WATCH.
#include <algorithm>
#include <string>

#include "kv/call/call.hpp"
#include "kv/clients/access_control.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/watches.hpp"
#include "kv/command/command.hpp"
#include "kv/effects/effects.hpp"
#include "kv/scripts/scripts.hpp"

namespace weir::kv {

namespace {

void multi(const Call& call) {
  if (call.client.transaction.open) return call.reply.error("ERR MULTI calls can not be nested");
  call.client.transaction.open = true;
  call.reply.ok();
}

void discard(const Call& call) {
  if (!call.client.transaction.open) return call.reply.error("ERR DISCARD without MULTI");
  call.server.discard_transaction(call.client);
  call.reply.ok();
}

// Permissions were checked when the command was queued, and have been reduced since.
std::string changed_rules(acl::Denied denied) {
  const std::string_view reason =
      denied == acl::Denied::command ? "no permission to execute the command or subcommand"
      : denied == acl::Denied::key   ? "no permission to touch the specified keys"
                                     : "no permission to access one of the channels used as arguments";
  return "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. "
         "This command is no longer allowed for the following reason: " +
         std::string(reason);
}

void exec(const Call& call) {
  Client& client = call.client;
  if (!client.transaction.open) return call.reply.error("ERR EXEC without MULTI");
  const bool expired = call.server.watches.any_expired(client, call.server.databases, call.now_ms);
  const bool spoiled = client.transaction.spoiled;
  const bool broken = client.transaction.broken || expired;
  std::vector<Transaction::Queued> queued = std::move(client.transaction.queued);
  call.server.discard_transaction(client);
  if (spoiled) return call.reply.error("EXECABORT Transaction discarded because of previous errors.");
  if (broken) return call.reply.null_array();
  const bool has_scripts = std::ranges::any_of(
      queued, [](const Transaction::Queued& one) { return one.command->group == "scripting"; });
  auto run_all = [&server = call.server, &client, queued = std::move(queued)] {
    const Effects::Together in_one_piece(server.effects);
    client.reply.array(queued.size());
    std::vector<Argument> arguments;
    client.in_exec = true;
    for (const Transaction::Queued& one : queued) {
      arguments.clear();
      for (const Bytes& word : one.words) arguments.push_back({word.view(), word.shared()});
      if (const auto denied = server.access.refusal(client, *one.command, arguments, acl::Context::multi)) {
        client.reply.error(changed_rules(*denied));
        continue;
      }
      server.run(client, *one.command, arguments);
    }
    client.in_exec = false;
  };
  has_scripts ? call.server.scripts->on_own_stack(client, std::move(run_all)) : run_all();
}

void watch(const Call& call) {
  if (call.client.transaction.open) return call.reply.error("ERR WATCH inside MULTI is not allowed");
  if (!call.client.transaction.broken) {
    for (std::size_t i = 1; i < call.count(); ++i)
      call.server.watches.watch(call.client, call.db, call[i], call.now_ms);
  }
  call.reply.ok();
}

void unwatch(const Call& call) {
  call.server.watches.unwatch(call.client);
  call.client.transaction.broken = false;
  call.reply.ok();
}

}  // namespace

std::span<const Command> transaction_commands() {
  using namespace flag;
  constexpr std::uint32_t common = noscript | loading | stale | fast | allow_busy;
  static constexpr Command commands[] = {
      {"multi", 1, common, 0, 0, 0, multi, "transactions", "Begins a transaction."},
      {"exec", 1, noscript | loading | stale | skip_slowlog, 0, 0, 0, exec, "transactions",
       "Runs the queued commands."},
      {"discard", 1, common, 0, 0, 0, discard, "transactions", "Drops the queued commands."},
      {"watch", -2, common, 1, -1, 1, watch, "transactions",
       "Makes EXEC depend on keys staying as they are."},
      {"unwatch", 1, common, 0, 0, 0, unwatch, "transactions", "Forgets the watched keys."},
  };
  return commands;
}

}  // namespace weir::kv
