// Strings of several keys at once.
#include "kv/call/call.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/commands/string_options.hpp"
#include "kv/commands/string_value.hpp"

namespace weir::kv {

namespace {

void mget(const Call& call) {
  call.reply.array(call.count() - 1);
  for (std::size_t i = 1; i < call.count(); ++i) {
    const Record* record = call.read(call[i]);
    if (record == nullptr || record->value.type() != Type::string) {
      call.reply.null();
    } else {
      call.reply.bulk(record->value.text());
    }
  }
}

void set_each(const Call& call) {
  for (std::size_t i = 1; i < call.count(); i += 2) {
    Record* record = call.write(call[i]);
    store_text(call, record, call[i], call.arguments[i + 1]);
    call.db.clear_expiry(*record);
    call.changed(call[i]);
  }
}

// "numkeys key value [key value ...]"; false: the client was answered.
bool counted_pairs_of_keys(const Call& call, Arguments& pairs) {
  const CountedKeys counted = counted_keys_in(call.arguments, 1, 2);
  const bool too_many = counted.wrong == CountedKeys::Wrong::too_many;
  if (too_many) return call.reply.error("ERR wrong number of key-value pairs"), false;
  if (counted.keys.empty()) return call.reply.error("ERR invalid numkeys value"), false;
  pairs = counted.keys;
  return true;
}

void msetex(const Call& call) {
  Arguments pairs;
  if (!counted_pairs_of_keys(call, pairs)) return;
  StringOptions options;
  if (!parse_string_options(call, 2 + pairs.size(), OptionsFor::several_keys, options))
    return call.syntax_error();
  std::int64_t at_ms = Record::never;
  if (options.expires && !expiry_time(call, options.time_at, options.form, at_ms)) return;
  const bool must = options.exists == StringOptions::Exists::must;
  for (std::size_t i = 0; options.exists != StringOptions::Exists::any && i < pairs.size(); i += 2) {
    if ((call.write(pairs[i].text) != nullptr) != must) return call.reply.integer(0);
  }
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const std::string_view key = pairs[i].text;
    Record* record = call.write(key);
    store_text(call, record, key, pairs[i + 1]);
    if (options.expires) {
      call.db.set_expiry(*record, at_ms);
      call.replay_as({"SET", key, pairs[i + 1], "PXAT", at_ms});
    } else if (options.keep_ttl) {
      call.replay_as({"SET", key, pairs[i + 1], "KEEPTTL"});
    } else {
      call.db.clear_expiry(*record);
      call.replay_as({"SET", key, pairs[i + 1]});
    }
    call.changed(key);
    if (options.expires) call.notify(key, expiry_set);
  }
  if (options.expires) call.server.arm_timer();
  call.reply.integer(1);
}

bool has_pairs(const Call& call) {
  if (call.count() % 2 == 1) return true;
  call.reply.error("ERR wrong number of arguments for '" + std::string(call.command.name) + "' command");
  return false;
}

void mset(const Call& call) {
  if (!has_pairs(call)) return;
  set_each(call);
  call.reply.ok();
}

void msetnx(const Call& call) {
  if (!has_pairs(call)) return;
  for (std::size_t i = 1; i < call.count(); i += 2) {
    if (call.write(call[i]) != nullptr) return call.reply.integer(0);
  }
  set_each(call);
  call.reply.integer(1);
}

}  // namespace

std::span<const Command> string_together_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"mget", -2, readonly | fast, 1, -1, 1, mget, "string", "Returns the strings at several keys."},
      {"mset", -3, write | denyoom, 1, -1, 2, mset, "string", "Sets the strings at several keys."},
      {"msetnx", -3, write | denyoom, 1, -1, 2, msetnx, "string",
       "Sets several strings unless one of the keys exists."},
      {"msetex", -4, write | denyoom | movablekeys, 0, 0, 0, msetex, "string",
       "Sets the strings at several keys, and when they expire."},
  };
  return commands;
}

}  // namespace weir::kv
