// What one call of a command does for it: finds records, reads numbers, and reports changes.
#include "kv/call/call.hpp"

#include <limits>

#include "kv/clients/notifications.hpp"
#include "kv/command/usual_event.hpp"
#include "kv/effects/effects.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

void ServerParts::wait_for(const Call& call, std::vector<std::string> keys, std::int64_t timeout_ms,
                           NullForm null) {
  wait_for(call, call.arguments, std::move(keys), timeout_ms, null);
}

Record* Call::read(std::string_view key) const {
  Record* record = db.find(key, now_ms);
  ++(record != nullptr ? server.stats.hits : server.stats.misses);
  if (record == nullptr && server.notifications.any()) notify(key, {'m', "keymiss"});
  return record;
}

Record* Call::look(std::string_view key) const {
  Record* record = db.peek(key, now_ms);
  ++(record != nullptr ? server.stats.hits : server.stats.misses);
  if (record == nullptr && server.notifications.any()) notify(key, {'m', "keymiss"});
  return record;
}

void Call::changed(std::string_view key) const {
  server.effects.changed(db, key);
  if (server.notifications.any()) notify(key, usual_event(command));
}

void Call::changed(std::string_view key, KeyEvent event) const {
  server.effects.changed(db, key);
  if (server.notifications.any()) notify(key, event);
}

void Call::erase(std::string_view key) const {
  erase(key, server.notifications.any() ? usual_event(command) : KeyEvent{});
}

void Call::erase(std::string_view key, KeyEvent event) const {
  if (!db.erase(key)) return;
  server.effects.changed(db, key);
  if (!server.notifications.any()) return;
  if (may_empty(event)) notify(key, event);
  notify(key, key_deleted);
}

void Call::notify(std::string_view key, KeyEvent event) const {
  server.notifications.tell(db.index(), event, key);
}

bool Call::heard() const { return server.effects.heard(); }

void Call::replay_as(std::initializer_list<RequestWord> words) const {
  server.effects.say(db.index(), {words.begin(), words.size()});
}

bool Call::integer(std::size_t argument, std::int64_t& value, std::string_view error) const {
  const auto parsed = parse_int(arguments[argument].text);
  if (!parsed) {
    reply.error(error);
    return false;
  }
  value = *parsed;
  return true;
}

void Call::subcommand_error() const {
  reply.error("ERR unknown subcommand or wrong number of arguments for '" +
              std::string(up_to_zero(arguments[1].text).substr(0, 128)) + "'. Try " +
              in_capitals(command.container.empty() ? command.name : command.container) + " HELP.");
}

Keyspace* Call::database(std::size_t argument) const {
  std::int64_t index = 0;
  if (!integer(argument, index)) return nullptr;
  if (index < std::numeric_limits<int>::min() || index > std::numeric_limits<int>::max()) {
    reply.error("ERR value is out of range, value must between -2147483648 and 2147483647");
    return nullptr;
  }
  if (index < 0 || index >= server.settings.databases) {
    reply.error("ERR DB index is out of range");
    return nullptr;
  }
  return server.databases[static_cast<std::size_t>(index)].get();
}

bool Call::number(std::size_t argument, double& value, std::string_view error) const {
  const auto parsed = parse_double(arguments[argument].text);
  if (!parsed) {
    reply.error(error);
    return false;
  }
  value = *parsed;
  return true;
}

bool Call::typed(const Record* record, Type type) const {
  if (record == nullptr || record->value.type() == type) return true;
  reply.error("WRONGTYPE Operation against a key holding the wrong kind of value");
  return false;
}

}  // namespace weir::kv
