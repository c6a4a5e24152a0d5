// The connection itself: the client's identity, its protocol and its database.
#include "kv/call/call.hpp"
#include "kv/clients/access_control.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/monitors.hpp"
#include "kv/clients/pubsub.hpp"
#include "kv/command/command.hpp"
#include "kv/replication/replication.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

void ping(const Call& call) {
  if (call.count() > 2) return call.reply.error("ERR wrong number of arguments for 'ping' command");
  if (call.client.only_pubsub()) return call.reply.bulks({"pong", call.count() == 2 ? call[1] : ""});
  if (call.count() == 1) return call.reply.raw("+PONG\r\n");
  call.reply.bulk(call[1]);
}

void echo(const Call& call) { call.reply.bulk(call[1]); }

bool authenticate(const Call& call, std::string_view user, std::string_view password) {
  if (call.server.access.authenticate(call.client, user, password, call[0])) return true;
  call.reply.error("WRONGPASS invalid username-password pair or user is disabled.");
  return false;
}

void auth(const Call& call) {
  if (call.count() > 3) return call.syntax_error();
  if (call.count() == 2 && call.server.access.users().default_user().needs_no_password()) {
    return call.reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
        "configuration is correct?");
  }
  const bool named = call.count() == 3;
  if (authenticate(call, named ? call[1] : "default", named ? call[2] : call[1])) call.reply.ok();
}

bool valid_client_name(std::string_view name) {
  for (char c : name) {
    if (c < '!' || c > '~') return false;
  }
  return true;
}

void hello(const Call& call) {
  std::size_t at = 1;
  std::int64_t version = 0;
  if (call.count() > 1) {
    const auto wanted = parse_int(call[at++]);
    if (!wanted) return call.reply.error("ERR Protocol version is not an integer or out of range");
    if (*wanted < 2 || *wanted > 3) return call.reply.error("NOPROTO unsupported protocol version");
    version = *wanted;
  }
  std::string_view name;
  bool named = false;
  for (; at < call.count(); ++at) {
    const std::size_t more = call.count() - 1 - at;
    if (is_word(call[at], "AUTH") && more >= 2) {
      if (!authenticate(call, call[at + 1], call[at + 2])) return;
      at += 2;
    } else if (is_word(call[at], "SETNAME") && more >= 1) {
      name = call[++at];
      named = true;
      if (!valid_client_name(name)) {
        return call.reply.error("ERR Client names cannot contain spaces, newlines or special characters.");
      }
    } else {
      return call.reply.error("ERR Syntax error in HELLO option '" + std::string(call[at]) + "'");
    }
  }
  if (!call.client.authenticated()) {
    return call.reply.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> "
        "<pass> option can be used to authenticate the client and select the RESP protocol version at the "
        "same time");
  }
  if (named) call.client.name = name;
  if (version != 0) call.reply.protocol = version == 3 ? Protocol::resp3 : Protocol::resp2;
  const std::string& zone = call.server.settings.availability_zone;
  call.reply.map(zone.empty() ? 7 : 8);
  call.reply.bulk("server");
  call.reply.bulk("redis");
  call.reply.bulk("version");
  call.reply.bulk(WEIR_REDIS_VERSION);
  call.reply.bulk("proto");
  call.reply.integer(call.reply.resp3() ? 3 : 2);
  call.reply.bulk("id");
  call.reply.integer(static_cast<std::int64_t>(call.client.id()));
  call.reply.bulk("mode");
  call.reply.bulk("standalone");
  call.reply.bulk("role");
  call.reply.bulk(call.server.replication->follows() ? "replica" : "master");
  call.reply.bulk("modules");
  call.reply.array(0);
  if (zone.empty()) return;
  call.reply.bulk("availability_zone");
  call.reply.bulk(zone);
}

void select(const Call& call) {
  const Keyspace* chosen = call.database(1);
  if (chosen == nullptr) return;
  call.client.db = chosen->index();
  call.reply.ok();
}

void quit(const Call& call) {
  call.reply.ok();
  call.client.close_after_reply = true;
}

void reset(const Call& call) {
  Client& client = call.client;
  call.server.discard_transaction(client);
  call.server.pubsub.unsubscribe_all(client);
  call.server.monitors.remove(client);
  call.server.tracking.disable(client);
  client.db = 0;
  client.name.clear();
  client.program.redirects = false;
  client.no_evict = false;
  client.no_touch = false;
  client.set_replies(Replies::on);
  call.server.access.reset(client);
  call.reply.protocol = Protocol::resp2;
  call.reply.raw("+RESET\r\n");
}

}  // namespace

std::span<const Command> connection_commands() {
  using namespace flag;
  constexpr std::uint32_t any_time = loading | stale | fast;
  static constexpr Command commands[] = {
      {"ping", -1, fast, 0, 0, 0, ping, "connection", "Answers PONG, or what it was given."},
      {"echo", 2, fast | loading | stale, 0, 0, 0, echo, "connection", "Answers what it was given."},
      {"auth", -2, noscript | any_time | no_auth | allow_busy, 0, 0, 0, auth, "connection",
       "Says who the client is."},
      {"hello", -1, noscript | any_time | no_auth | allow_busy, 0, 0, 0, hello, "connection",
       "Agrees on the protocol version."},
      {"select", 2, any_time, 0, 0, 0, select, "connection", "Chooses the database."},
      {"quit", -1, noscript | any_time | no_auth | allow_busy, 0, 0, 0, quit, "connection",
       "Closes the connection."},
      {"reset", 1, noscript | any_time | no_auth | allow_busy, 0, 0, 0, reset, "connection",
       "Makes the connection as it was when it was new."},
  };
  return commands;
}

}  // namespace weir::kv
