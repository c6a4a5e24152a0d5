// Executes one request: the checks that every command passes, in Redis's order, and the
// bookkeeping around it.
#include <algorithm>

#include "kv/aof/kept.hpp"
#include "kv/gateway/gateway.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/replication/replication.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

bool always_runs_in_transaction(const Command& command) {
  using namespace std::string_view_literals;
  for (auto name : {"exec"sv, "discard"sv, "multi"sv, "watch"sv, "quit"sv, "reset"sv}) {
    if (command.name == name && command.container.empty()) return true;
  }
  return false;
}

bool allowed_while_subscribed(const Command& command) {
  using namespace std::string_view_literals;
  for (auto name : {"ping"sv, "subscribe"sv, "ssubscribe"sv, "sunsubscribe"sv, "psubscribe"sv,
                    "unsubscribe"sv, "punsubscribe"sv, "quit"sv, "reset"sv}) {
    if (command.name == name && command.container.empty()) return true;
  }
  return false;
}

// Whether the command runs even while a script has the server to itself.
bool runs_beside_script(const Command& command, Arguments arguments) {
  if (!command.has(flag::allow_busy)) return false;
  const auto lets_it_run = [](const Argument& word) {
    return is_word(word.text, "nosave") || is_word(word.text, "abort");
  };
  return command.name != "shutdown" || std::ranges::any_of(arguments.subspan(1), lets_it_run);
}

// Likewise while others wait for the script: whether the server lives can be asked at any time.
bool waits_for_script(const Command& command, Arguments arguments) {
  return !runs_beside_script(command, arguments) && command.name != "ping" && command.name != "echo";
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

// Scripts are checked for each of their commands.
bool would_change_data(const Client& client, const Command& command) {
  if (command.has(flag::write)) return true;
  return command.name == "exec" && command.container.empty() &&
         std::ranges::any_of(client.transaction.queued, [](const Transaction::Queued& queued) {
           return queued.command->has(flag::write);
         });
}

// The words of a browser's request that a web page made it post to this port: its body would
// run as inline commands.
bool looks_like_http(std::string_view command) {
  return is_word(command, "post") || is_word(command, "host:");
}

// Checks the enable-*-command settings; modules are never loaded here.
bool permits(const Settings& settings, const Command& command, const Client& client) {
  constexpr int yes = 1;
  constexpr int local = 2;
  if (command.name != "debug") return false;
  return settings.enable_debug_command == yes ||
         (settings.enable_debug_command == local && client.connection().local());
}

}  // namespace

std::string Server::unknown_command(Arguments arguments) const {
  constexpr std::size_t shown_most = 128;
  std::string shown;
  for (std::size_t i = 1; i < arguments.size() && shown.size() < shown_most; ++i) {
    const std::string_view word = up_to_zero(arguments[i].text).substr(0, shown_most - shown.size());
    shown.append(1, '\'').append(word).append("' ");
  }
  std::string text = "ERR unknown command '";
  return text.append(up_to_zero(arguments[0].text).substr(0, shown_most))
      .append("', with args beginning with: ")
      .append(shown);
}

void Server::reject(Client& client, const Command* command, std::string_view error) {
  if (command == nullptr || command->name != "exec" || !command->container.empty()) {
    client.transaction.spoiled |= client.transaction.open;
    client.reply.error(error);
  } else {
    // A refused EXEC ends the transaction and gives the reason.
    discard_transaction(client);
    if (error.substr(0, 4) == "ERR ") error.remove_prefix(4);
    client.reply.error("EXECABORT Transaction discarded because of: " + std::string(error));
  }
  stats.count_error(client.reply.last_code);
  if (command != nullptr) ++stats.calls_of(*command).rejected;
}

void Server::discard_transaction(Client& client) {
  watches.unwatch(client);
  client.transaction = {};
}

// Checks whether the client may run this command now. If not, replies with the error and returns true.
bool Server::refuse(Client& client, const Command* command, Arguments arguments) {
  if (!command->takes(arguments.size()) || command->run == nullptr) {
    reject(client, command, "ERR wrong number of arguments for '" + command->full_name() + "' command");
    return true;
  }
  if (command->has(flag::needs_permission) && !permits(settings, *command, client)) {
    const std::string_view name = command->container.empty() ? command->name : command->container;
    reject(client, command,
           "ERR " + in_capitals(name) + " command not allowed. If the enable-" + std::string(name) +
               "-command option is set to \"local\", you can run it from a local connection, otherwise you "
               "need to set this option in the configuration file, and then restart the server.");
    return true;
  }
  if (!client.authenticated() && !access.asks_for_password()) client.let_in();
  if (!client.authenticated() && !command->has(flag::no_auth)) {
    reject(client, command, "NOAUTH Authentication required.");
    return true;
  }
  if (client.transaction.open && command->has(flag::no_multi)) {
    reject(client, command, "ERR Command not allowed inside a transaction");
    return true;
  }
  if (!client.user->may_do_everything()) {
    const acl::Context context = client.transaction.open ? acl::Context::multi : acl::Context::toplevel;
    if (const auto denied = access.refusal(client, *command, arguments, context)) {
      reject(client, command, denial_text(*denied, *command));
      return true;
    }
  }
  if (script_suspended && !scripts->others_wait() && !runs_beside_script(*command, arguments)) {
    reject(client, command, scripts->busy_text());
    return true;
  }
  // Keys evicted here are gone before the command begins, so clients that cache them are told first.
  Client* const answered = std::exchange(serving, nullptr);
  const bool fits = settings.maxmemory == 0 || script_suspended || make_room();
  serving = answered;
  if (!fits && needs_room(client, *command)) {
    reject(client, command, "OOM command not allowed when used memory > 'maxmemory'.");
    return true;
  }
  if (command->has(flag::write) && snapshots->refuses_writes()) {
    reject(client, command, Snapshots::writes_refused);
    return true;
  }
  const std::string& not_kept = aof::refusal(*append_only);
  if (!not_kept.empty() && (would_change_data(client, *command) || command->name == "ping")) {
    reject(client, command, not_kept);
    return true;
  }
  // Asked in this order: with min-replicas-to-write the refusal counts the replicas.
  if (would_change_data(client, *command)) {
    if (const std::string_view refusal = replication->write_refusal(); !refusal.empty()) {
      reject(client, command, refusal);
      return true;
    }
  }
  if (!command->has(flag::stale) && replication->refuses_stale_reads()) {
    reject(client, command,
           "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
    return true;
  }
  if (loading && !command->has(flag::loading)) {
    reject(client, command, "LOADING Redis is loading the dataset in memory");
    return true;
  }
  if (client.monitors && command->has(flag::write | flag::readonly | flag::may_replicate)) {
    // Redis counts monitors as replicas.
    reject(client, command, "ERR Replica can't interact with the keyspace");
    return true;
  }
  if (client.only_pubsub() && !allowed_while_subscribed(*command)) {
    reject(client, command,
           "ERR Can't execute '" + command->full_name() +
               "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context");
    return true;
  }
  return false;
}

bool Server::execute(Client& client, Arguments arguments) {
  serving = &client;
  const bool taken =
      gateway != nullptr ? gateway->execute(client, arguments) : execute_here(client, arguments);
  serving = nullptr;
  if (!taken) return false;
  if (tracking.any()) tracking.command_over(client);
  if (client.replies() != Replies::on && !client.script_runs) client.end_of_command();
  if (blocking.ready() && !script_suspended) blocking.serve();
  return true;
}

bool Server::execute_here(Client& client, Arguments arguments) {
  const Command* command = find_command(arguments[0].text);
  if (command == nullptr && looks_like_http(arguments[0].text)) {
    log(LogLevel::verbose, "client " + std::to_string(client.id()) + " (" +
                               client.connection().peer_address() +
                               ") speaks HTTP: closed, because a web page may be behind it");
    client.close();  // drops the replies that wait, as Redis does
    return true;
  }
  if (command == nullptr) return reject(client, nullptr, unknown_command(arguments)), true;
  if (!command->subcommands.empty() && arguments.size() > 1) {
    const Command* sub = find_subcommand(*command, arguments[1].text);
    if (sub == nullptr) {
      const std::string name(up_to_zero(arguments[1].text).substr(0, 128));
      reject(client, nullptr,
             "ERR unknown subcommand '" + name + "'. Try " + in_capitals(command->name) + " HELP.");
      return true;
    }
    command = sub;
  }
  if (scripts->others_wait() && waits_for_script(*command, arguments)) return false;
  client.last_command = command;
  if (refuse(client, command, arguments)) return true;
  if (client.transaction.open && !always_runs_in_transaction(*command)) {
    auto& queued = client.transaction.queued.emplace_back();
    queued.command = command;
    for (const Argument& word : arguments) {
      queued.words.push_back(word.block != nullptr ? Bytes(BlobRef::share(word.block)) : Bytes(word.text));
      client.transaction.queued_bytes += sizeof(Bytes) + word.text.size();
    }
    client.transaction.queued_bytes += sizeof queued;
    client.reply.raw("+QUEUED\r\n");
    return true;
  }
  if (pause_.any() && held_back(client, *command)) return false;
  if (gateway != nullptr && gateway->pass_on(client, *command, arguments)) {
    ++stats.commands;
    ++stats.calls_of(*command).calls;
    if (monitors.any()) monitors.tell(client, *command, arguments);
    return true;
  }
  run(client, *command, arguments);
  return true;
}

bool Server::held_back(const Client& client, const Command& command) const {
  const auto may_write = [](const Command& one) { return one.has(flag::write | flag::may_replicate); };
  const bool queue_may =
      std::ranges::any_of(client.transaction.queued,
                          [&](const Transaction::Queued& queued) { return may_write(*queued.command); });
  // While everything is held back, the commands of CLIENT still end the pause.
  if (command.container == "client") return false;
  return pause_.holds(may_write(command) || (command.name == "exec" && queue_may), steady_ms);
}

void Server::run(Client& client, const Command& command, Arguments arguments) {
  ++stats.commands;
  counted_errors_ = client.reply.errors;
  const Call call{*this,        client,    command, *databases[static_cast<std::size_t>(client.db)],
                  client.reply, arguments, now_ms};
  const bool outer = std::exchange(changes_data, command.has(flag::write | flag::may_replicate));
  // MONITOR shows a script before its commands.
  const bool shown_first = command.group == "scripting" && monitors.any();
  if (shown_first) monitors.tell(client, command, arguments);
  use_clock.rests = client.no_touch && command.name != "touch";
  const std::uint64_t begin = cycles_now();
  {
    const Effects::Running running(effects, client.db, arguments);
    command.run(call);
  }
  const std::uint64_t spent = cycles_now() - begin;
  changes_data = outer;
  use_clock.rests = false;
  if (client.tracking != nullptr) tracking.ran(client, command, arguments);
  Stats::Calls& calls = stats.calls_of(command);
  ++calls.calls;
  calls.cycles += spent;
  if (settings.latency_tracking && client.blocked == nullptr) calls.latency.record(spent);
  // The errors of commands that EXEC ran are already counted, for those commands.
  if (client.reply.errors != counted_errors_) {
    counted_errors_ = client.reply.errors;
    ++calls.failed;
    stats.count_error(client.reply.last_code);
  }
  slow_work.look_at(client, command, arguments, spent);
  if (monitors.any() && !shown_first) monitors.tell(client, command, arguments);
}

void Server::answer_in_vain(Client& client) {
  const BlockedOn& on = *client.blocked;
  if (on.command->name == "migrate") {
    blocking.fail(client, "IOERR error or timeout reading to target instance");
  } else if (on.command->name == "waitaof") {
    aof::give_up_waiting(*append_only, client);
  } else if (on.replicas != 0) {
    client.reply.integer(replication->replicas().count_acknowledged(on.position));
  } else {
    client.reply.null_array();
  }
}

void Server::released(Client& client, const Command& command) {
  if (command.name == "migrate") migrations->abandon(client);
}

bool Server::retry_blocked(Client& client, const BlockedOn& on, std::string_view key) {
  std::vector<Argument> arguments;
  for (const Bytes& word : on.words) arguments.push_back({word.view(), nullptr});
  still_waits_ = false;
  // The user's permissions may have changed meanwhile.
  if (const auto denied = access.refusal(client, *on.command, arguments, acl::Context::toplevel)) {
    blocking.fail(client, denial_text(*denied, *on.command));
    return true;
  }
  const int db = std::exchange(client.db, on.db);
  const Call call{*this,        client,    *on.command, *databases[static_cast<std::size_t>(on.db)],
                  client.reply, arguments, now_ms,      true,
                  key};
  const bool outer = std::exchange(changes_data, on.command->has(flag::write | flag::may_replicate));
  const std::uint64_t begin = cycles_now();
  {
    const Effects::Running running(effects, on.db, arguments);
    Client* const served_before = std::exchange(serving, &client);
    on.command->run(call);
    serving = served_before;
  }
  const std::uint64_t spent = cycles_now() - begin;
  changes_data = outer;
  client.db = db;
  if (still_waits_) return false;
  if (settings.latency_tracking) stats.calls_of(*on.command).latency.record(spent);
  return true;
}

void Server::wait_for(const Call& call, Arguments words, std::vector<std::string> keys,
                      std::int64_t timeout_ms, NullForm null) {
  if (call.retried) {
    still_waits_ = true;
    return;
  }
  if (call.client.in_exec) return null == NullForm::array ? call.reply.null_array() : call.reply.null();
  BlockedOn on{&call.command, {}, {}, call.client.db, timeout_ms == 0 ? 0 : steady_ms + timeout_ms};
  for (const Argument& word : words) on.words.emplace_back(word.text);
  blocking.block(call.client, std::move(on), std::move(keys));
}

}  // namespace weir::kv
