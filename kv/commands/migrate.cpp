// MIGRATE: moves keys to another server. What it does is in kv/migration/.
#include <algorithm>

#include "kv/call/call.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/migration/migrations.hpp"
#include "kv/text/number.hpp"
#include "kv/text/text_hash.hpp"

namespace weir::kv {

namespace {

// False: it has replied with an error.
bool read_options(const Call& call, migration::Order& order, Arguments& keys) {
  keys = call.arguments.subspan(3, 1);
  OptionWalk walk(migrate_options, call.arguments);
  while (walk.next()) {
    if (walk.is("COPY")) {
      order.copy = true;
    } else if (walk.is("REPLACE")) {
      order.replace = true;
    } else if (walk.is("AUTH")) {
      order.password = call[walk.value()];
    } else if (walk.is("AUTH2")) {
      order.user = call[walk.value()];
      order.password = call[walk.value() + 1];
    } else if (call[3].empty()) {
      keys = call.arguments.subspan(walk.value());
    } else {
      call.reply.error(
          "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string");
      return false;
    }
  }
  if (walk.wrong()) call.syntax_error();
  return !walk.wrong();
}

void migrate(const Call& call) {
  constexpr std::int64_t usual_timeout_ms = 1000;
  constexpr std::int64_t longest_timeout_ms = std::int64_t{1} << 40;
  migration::Order order;
  Arguments keys;
  if (!read_options(call, order, keys)) return;
  if (!call.integer(5, order.timeout_ms) || !call.integer(4, order.target_db)) return;
  if (order.timeout_ms <= 0) order.timeout_ms = usual_timeout_ms;
  order.timeout_ms = std::min(order.timeout_ms, longest_timeout_ms);
  TextSet named;
  for (const Argument& key : keys) {
    if (call.read(key.text) != nullptr && named.emplace(key.text).second) order.keys.emplace_back(key.text);
  }
  if (order.keys.empty()) return call.reply.simple("NOKEY");
  // Redis stops until the other server has answered; this one serves others meanwhile.
  if (call.client.in_exec)
    return call.reply.error("ERR MIGRATE is not possible in a transaction or script: it waits");
  order.host = call[1];
  const auto port = parse_int(call[2]);
  if (!port || *port < 1 || *port > 65535)
    return call.reply.error("IOERR error or timeout connecting to the client");
  order.port = static_cast<std::uint16_t>(*port);
  migration::Migrations& migrations = *call.server.migrations;
  if (!migrations.prepare(call.client, std::move(order)))
    return call.reply.error("TRYAGAIN another MIGRATE moves one of these keys");
  call.server.wait_for(call, {}, {}, 0, NullForm::single);
  migrations.start(call.client);
}

}  // namespace

std::span<const Command> migrate_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"migrate", -6, write | movablekeys, 3, 3, 1, migrate, "generic", "Moves keys to another server."},
  };
  return commands;
}

}  // namespace weir::kv
