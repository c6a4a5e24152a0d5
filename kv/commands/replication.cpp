// Replicas of this server, and waiting for their confirmation.
#include "kv/replication/replication.hpp"

#include <limits>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/replication/primary_link.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

using repl::Replica;

constexpr std::size_t longest_address = 255;

Replica& replica_of(Client& client) {
  if (client.replica == nullptr) client.replica = std::make_unique<Replica>();
  return *client.replica;
}

// Returns false after replying with an error.
bool take_option(const Call& call, std::string_view name, std::string_view value) {
  if (is_word(name, "listening-port")) {
    const auto port = parse_int(value);
    if (!port || *port < 0 || *port > 65535)
      return call.reply.error("ERR value is not an integer or out of range"), false;
    replica_of(call.client).port = static_cast<std::uint16_t>(*port);
  } else if (is_word(name, "ip-address")) {
    if (value.size() > longest_address)
      return call.reply.error("ERR REPLCONF ip-address provided by replica instance is too long: " +
                              std::to_string(value.size()) + " bytes"),
             false;
    replica_of(call.client).address = value;
  } else if (is_word(name, "capa")) {
    // Unknown capabilities are for other servers.
    if (is_word(value, "eof")) replica_of(call.client).takes_end_mark = true;
    if (is_word(value, "psync2")) replica_of(call.client).knows_renaming = true;
  } else if (is_word(name, "rdb-only")) {
    replica_of(call.client).wants_only_data = value == "1";
  } else if (is_word(name, "rdb-filter-only")) {
    if (!value.empty() && !is_word(value, "functions"))
      return call.reply.error("ERR Unsupported rdb-filter-only option: " + std::string(value.substr(0, 128))),
             false;
    replica_of(call.client).wants_only_functions = !value.empty();
  } else if (is_word(name, "version")) {  // Valkey's replicas since 8.1, and this server as one
    const auto major = parse_int(value.substr(0, value.find('.')));
    constexpr int first_with_own_snapshots = 9;
    replica_of(call.client).reads_valkey = major && *major >= first_with_own_snapshots;
  } else {
    return call.reply.error("ERR Unrecognized REPLCONF option: " +
                            std::string(up_to_zero(name).substr(0, 128))),
           false;
  }
  return true;
}

void replconf(const Call& call) {
  if (call.count() % 2 == 0) return call.syntax_error();
  for (std::size_t i = 1; i < call.count(); i += 2) {
    if (is_word(call[i], "ack")) {  // never gets a reply
      const auto position = parse_int(call[i + 1]);
      const bool says_synced = i + 3 < call.count() && is_word(call[i + 2], "fack");
      const auto synced = says_synced ? parse_int(call[i + 3]) : std::nullopt;
      if (position && call.client.replica != nullptr)
        call.server.replication->replicas().acknowledged(call.client, *position, synced.value_or(-1));
      return;
    }
    if (is_word(call[i], "getack")) return;  // only a primary sends this
    if (!take_option(call, call[i], call[i + 1])) return;
  }
  call.reply.ok();
}

// Returns false after replying with an error.
bool may_follow(const Call& call) {
  if (call.client.is_replica()) return false;  // it already follows; its stream must not contain a reply
  replica_of(call.client);
  const repl::Primary* const link = call.server.replication->link();
  if (link != nullptr && !link->up()) {
    call.reply.error("NOMASTERLINK Can't SYNC while not connected with my master");
    return false;
  }
  if (call.server.replication->failover().under_way()) {
    call.reply.error("NOMASTERLINK Can't SYNC while failing over");
    return false;
  }
  call.server.replication->watch_clock();
  return true;
}

// "PSYNC id position FAILOVER": this server's primary asks it to take over. Returns false after replying with
// an error.
bool take_over(const Call& call) {
  repl::Replication& replication = *call.server.replication;
  if (!replication.follows()) return call.reply.error("ERR PSYNC FAILOVER can't be sent to a master."), false;
  if (call[1] != replication.history().id())
    return call.reply.error("ERR PSYNC FAILOVER replid must match my replid."), false;
  call.server.log(LogLevel::notice, "the primary asks this server to take over (" +
                                        call.client.connection().peer_address() + ')');
  replication.stop_following();
  return true;
}

void psync(const Call& call) {
  std::int64_t number = 0;
  if (!call.integer(2, number)) return;
  const bool hands_over = call.count() > 3 && is_word(call[3], "FAILOVER") && !call.client.is_replica();
  if (hands_over && !take_over(call)) return;
  if (!may_follow(call)) return;
  // The protocol counts from 1 and writes "? -1" for no history.
  const bool has_something = call[1] != "?" && number > 0;
  call.server.replication->replicas().follow(call.client, has_something ? call[1] : std::string_view(),
                                             number - 1);
}

void sync(const Call& call) {
  if (!may_follow(call)) return;
  call.client.replica->asked_the_old_way = true;
  call.server.replication->replicas().follow(call.client, {}, 0);
}

// REPLICAOF HOST PORT, REPLICAOF NO ONE.
void replicaof(const Call& call) {
  repl::Replication& replication = *call.server.replication;
  if (replication.failover().under_way())
    return call.reply.error("ERR REPLICAOF not allowed while failing over.");
  if (is_word(call[1], "NO") && is_word(call[2], "ONE")) {
    replication.stop_following();
    return call.reply.ok();
  }
  if (call.client.is_replica()) return call.reply.error("ERR Command is not valid when client is a replica.");
  const auto port = parse_int(call[2]);
  if (!port || *port < 0 || *port > 65535) return call.reply.error("ERR Invalid master port");
  if (!repl::PrimaryAddress::may_be_host(call[1])) return call.reply.error("ERR Invalid master host");
  repl::PrimaryAddress address{std::string(call[1]), static_cast<std::uint16_t>(*port)};
  if (replication.follows() && replication.link()->address() == address)
    return call.reply.simple("OK Already connected to specified master");
  repl::follow_primary(call.server, std::move(address));
  call.reply.ok();
}

// Returns false after replying with an error.
bool read_failover(const Call& call, repl::Failover::Order& order) {
  for (std::size_t i = 1; i < call.count(); ++i) {
    const std::size_t more = call.count() - 1 - i;
    if (is_word(call[i], "TIMEOUT") && more >= 1 && order.timeout_ms == 0) {
      if (!call.integer(++i, order.timeout_ms)) return false;
      if (order.timeout_ms <= 0)
        return call.reply.error("ERR FAILOVER timeout must be greater than 0"), false;
    } else if (is_word(call[i], "TO") && more >= 2 && !order.to) {
      std::int64_t port = 0;
      if (!call.integer(i + 2, port)) return false;
      if (!repl::PrimaryAddress::may_be_host(call[i + 1]))
        return call.reply.error("ERR Invalid master host"), false;
      order.to = {std::string(call[i + 1]), static_cast<std::uint16_t>(port)};
      i += 2;
    } else if (is_word(call[i], "FORCE") && !order.force) {
      order.force = true;
    } else {
      return call.syntax_error(), false;
    }
  }
  return true;
}

// FAILOVER [TO host port [FORCE]] [TIMEOUT ms], FAILOVER ABORT.
void failover(const Call& call) {
  repl::Replication& replication = *call.server.replication;
  repl::Failover& failover = replication.failover();
  if (call.count() == 2 && is_word(call[1], "ABORT"))
    return failover.abort() ? call.reply.ok() : call.reply.error("ERR No failover in progress.");
  repl::Failover::Order order;
  if (!read_failover(call, order)) return;
  if (!failover.under_way() && replication.follows())
    return call.reply.error("ERR FAILOVER is not valid when server is a replica.");
  const repl::Failover::Role role{
      [&server = call.server](repl::PrimaryAddress to) { repl::follow_primary(server, std::move(to)); },
      [&replication] { replication.stop_following(); }};
  const std::string_view error = failover.begin(std::move(order), role);
  error.empty() ? call.reply.ok() : call.reply.error(error);
}

void role(const Call& call) { call.server.replication->reply_role(call); }

void wait(const Call& call) {
  std::int64_t wanted = 0;
  if (!call.integer(1, wanted)) return;
  const auto ms = parse_int(call[2]);
  if (!ms) return call.reply.error("ERR timeout is not an integer or out of range");
  if (*ms < 0) return call.reply.error("ERR timeout is negative");
  if (call.server.replication->follows())
    return call.reply.error(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica "
        "is "
        "configured to be writable (which is not the default) writes to replicas are just local and are not "
        "propagated.");
  repl::Replicas& replicas = call.server.replication->replicas();
  // This also waits for changes that other clients made until now.
  const std::int64_t position = call.server.replication->history().end();
  const std::int64_t have = replicas.count_acknowledged(position);
  if (have >= wanted || call.client.in_exec) return call.reply.integer(have);
  // Redis takes a time beyond the range of its clock for one that never comes.
  const bool for_ever = *ms > std::numeric_limits<std::int64_t>::max() - call.server.steady_ms;
  call.server.wait_for(call, {}, for_ever ? 0 : *ms, NullForm::single);
  call.client.blocked->replicas = wanted;
  call.client.blocked->position = position;
  replicas.wait_for(call.client);
}

}  // namespace

std::span<const Command> replication_commands() {
  using namespace flag;
  constexpr std::uint32_t joins = admin | noscript | no_async_loading | no_multi;
  static constexpr Command commands[] = {
      {"replconf", -1, admin | noscript | loading | stale | allow_busy, 0, 0, 0, replconf, "server",
       "What servers that replicate say to each other."},
      {"psync", -3, joins, 0, 0, 0, psync, "server", "Follows this server as a replica."},
      {"sync", 1, joins, 0, 0, 0, sync, "server", "Follows this server as an old replica does."},
      {"replicaof", 3, admin | noscript | stale | no_async_loading, 0, 0, 0, replicaof, "server",
       "Follows another server, or none."},
      {"slaveof", 3, admin | noscript | stale | no_async_loading, 0, 0, 0, replicaof, "server",
       "Follows another server, or none."},
      {"failover", -1, admin | noscript | stale, 0, 0, 0, failover, "server",
       "Changes places with a replica that has everything."},
      {"role", 1, noscript | loading | stale | fast, 0, 0, 0, role, "server",
       "Says what the server is to others."},
      {"wait", 3, noscript, 0, 0, 0, wait, "generic", "Waits until replicas have what the client changed."},
  };
  return commands;
}

}  // namespace weir::kv
