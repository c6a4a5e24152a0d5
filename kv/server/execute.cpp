// Executes one request: the checks that every command passes, in Redis's order, and the
// bookkeeping around it.
#include <algorithm>

#include "kv/core/gateway.hpp"
#include "kv/core/kept.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/replication/replication.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/server/refusal.hpp"
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

// While others wait for a script: whether the server lives can be asked at any time.
bool waits_for_script(const Command& command, Arguments arguments) {
  return !runs_beside_script(command, arguments) && command.name != "ping" && command.name != "echo";
}

// The words of a browser's request that a web page made it post to this port: its body would
// run as inline commands.
bool looks_like_http(std::string_view command) {
  return is_word(command, "post") || is_word(command, "host:");
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
  if (const auto error = refusal({*this, client, *command, arguments})) {
    reject(client, command, *error);
    return true;
  }
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
  if (pause_.any() && held_back(client, *command, arguments)) return false;
  if (gateway != nullptr && gateway->pass_on(client, *command, arguments)) {
    ++stats.commands;
    ++stats.calls_of(*command).calls;
    if (monitors.any()) monitors.tell(client, *command, arguments);
    return true;
  }
  run(client, *command, arguments);
  return true;
}

bool Server::held_back(const Client& client, const Command& command, Arguments arguments) const {
  const auto may_write = [this](const Command& one, Arguments words) {
    return one.has(flag::write | flag::may_replicate) && !scripts->declares_no_writes(one, words);
  };
  const auto queued_may = [&](const Transaction::Queued& queued) {
    std::vector<Argument> words;
    for (const Bytes& word : queued.words) words.push_back({word.view(), nullptr});
    return may_write(*queued.command, words);
  };
  const bool queue_may = command.name == "exec" && std::ranges::any_of(client.transaction.queued, queued_may);
  // While everything is held back, the commands of CLIENT still end the pause.
  if (command.container == "client") return false;
  return pause_.holds(may_write(command, arguments) || queue_may, steady_ms);
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
  const CommandCost before{0, request_bytes(arguments), client.output.size()};
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
  if (client.blocked == nullptr) ++client.traffic.commands;
  if (settings.latency_tracking && client.blocked == nullptr) calls.latency.record(spent);
  // The errors of commands that EXEC ran are already counted, for those commands.
  if (client.reply.errors != counted_errors_) {
    counted_errors_ = client.reply.errors;
    ++calls.failed;
    stats.count_error(client.reply.last_code);
  }
  const std::size_t unsent = client.output.size();
  const std::size_t replied = unsent > before.reply_bytes ? unsent - before.reply_bytes : 0;
  // One that waits is looked at when its wait is over.
  if (client.blocked == nullptr)
    slow_work.look_at(client, command, arguments, {spent, before.request_bytes, replied});
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
  const std::size_t unsent_before = client.output.size();
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
  ++client.traffic.commands;
  const std::size_t unsent = client.output.size();
  const std::size_t replied = unsent > unsent_before ? unsent - unsent_before : 0;
  slow_work.look_at(client, *on.command, arguments, {spent, request_bytes(arguments), replied});
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
