// Keys of any type: deleting, renaming, copying, moving, inspecting them.
#include <algorithm>
#include <limits>

#include "kv/call/call.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/clients/notifications.hpp"
#include "kv/clients/tracking.hpp"
#include "kv/clients/watches.hpp"
#include "kv/command/command.hpp"
#include "kv/command/usual_event.hpp"
#include "kv/commands/help.hpp"
#include "kv/effects/effects.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/text/glob.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

void del(const Call& call) {
  std::int64_t deleted = 0;
  for (std::size_t i = 1; i < call.count(); ++i) {
    if (call.write(call[i]) == nullptr) continue;
    call.erase(call[i]);
    ++deleted;
  }
  call.reply.integer(deleted);
}

void exists(const Call& call) {
  std::int64_t found = 0;
  for (std::size_t i = 1; i < call.count(); ++i) found += call.look(call[i]) != nullptr ? 1 : 0;
  call.reply.integer(found);
}

void type(const Call& call) {
  const Record* record = call.look(call[1]);
  call.reply.simple(record == nullptr ? "none" : type_name(record->value.type()));
}

void keys(const Call& call) {
  std::vector<std::string_view> found;
  const std::string_view pattern = call[1];
  const bool all = pattern == "*";
  call.db.records().for_each([&](const Record& record) {
    const bool live = record.expires_at_ms == Record::never || record.expires_at_ms > call.now_ms;
    if (live && (all || glob_match(pattern, record.key()))) found.push_back(record.key());
    return true;
  });
  call.reply.array(found.size());
  for (std::string_view key : found) call.reply.bulk(key);
}

void randomkey(const Call& call) {
  for (int tries = 0; tries < 100; ++tries) {
    const Record* record = call.db.sample([&] { return call.server.random(); });
    if (record == nullptr) break;
    // An expired key is removed now, and another one is tried.
    const std::string key(record->key());
    if (call.db.peek(key, call.now_ms) != nullptr) return call.reply.bulk(key);
  }
  // A replica, and a server whose clients may not write, keep keys that have expired: any of them will do.
  const Record* record = call.db.sample([&] { return call.server.random(); });
  record == nullptr ? call.reply.null() : call.reply.bulk(record->key());
}

// True if the key was renamed (or the new name is the old one).
bool rename_key(const Call& call, bool overwrite) {
  Record* record = call.write(call[1]);
  if (record == nullptr) {
    call.reply.error("ERR no such key");
    return false;
  }
  const bool same = call[1] == call[2];
  if (same && overwrite) return true;
  if (!overwrite && (same || call.write(call[2]) != nullptr)) {
    call.reply.integer(0);
    return false;
  }
  if (call.write(call[2]) != nullptr) call.db.erase(call[2]);
  call.db.rename(*record, call[2]);
  call.changed(call[1], {'g', "rename_from"});
  call.changed(call[2], {'g', "rename_to"});
  return true;
}
void rename(const Call& call) {
  if (rename_key(call, true)) call.reply.ok();
}
void renamenx(const Call& call) {
  if (rename_key(call, false)) call.reply.integer(1);
}

void copy(const Call& call) {
  Keyspace* target = &call.db;
  bool replace = false;
  for (std::size_t i = 3; i < call.count(); ++i) {
    if (is_word(call[i], "REPLACE")) {
      replace = true;
    } else if (is_word(call[i], "DB") && i + 1 < call.count()) {
      target = call.database(++i);
      if (target == nullptr) return;
    } else {
      return call.syntax_error();
    }
  }
  if (target == &call.db && call[1] == call[2]) {
    return call.reply.error("ERR source and destination objects are the same");
  }
  const Record* record = call.read(call[1]);
  if (record == nullptr) return call.reply.integer(0);
  if (target->find(call[2], call.now_ms) != nullptr) {
    if (!replace) return call.reply.integer(0);
    target->erase(call[2]);
  }
  Record& fresh = target->insert(call[2], record->value.copy());
  if (record->expires_at_ms != Record::never) target->set_expiry(fresh, record->expires_at_ms);
  call.server.effects.changed(*target, call[2]);
  call.server.notifications.tell(target->index(), usual_event(call.command), call[2]);
  call.reply.integer(1);
}

void move(const Call& call) {
  Keyspace* target = call.database(2);
  if (target == nullptr) return;
  if (target == &call.db) return call.reply.error("ERR source and destination objects are the same");
  Record* record = call.write(call[1]);
  if (record == nullptr || target->find(call[1], call.now_ms) != nullptr) return call.reply.integer(0);
  Record& fresh = target->insert(call[1], std::move(record->value));
  fresh.accessed = record->accessed;
  if (record->expires_at_ms != Record::never) target->set_expiry(fresh, record->expires_at_ms);
  call.db.erase(call[1]);
  call.changed(call[1], {'g', "move_from"});
  call.server.effects.changed(*target, call[1]);
  call.server.notifications.tell(target->index(), {'g', "move_to"}, call[1]);
  call.reply.integer(1);
}

void swapdb(const Call& call) {
  const auto first = parse_int(call[1]);
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (!first || *first > most || *first < -most) return call.reply.error("ERR invalid first DB index");
  const auto second = parse_int(call[2]);
  if (!second || *second > most || *second < -most) return call.reply.error("ERR invalid second DB index");
  const std::int64_t count = call.server.settings.databases;
  if (*first < 0 || *first >= count || *second < 0 || *second >= count) {
    return call.reply.error("ERR DB index is out of range");
  }
  if (*first != *second) {
    Keyspace& a = *call.server.databases[static_cast<std::size_t>(*first)];
    Keyspace& b = *call.server.databases[static_cast<std::size_t>(*second)];
    call.server.watches.touch_all(a, &b, call.now_ms);
    call.server.watches.touch_all(b, &a, call.now_ms);
    a.swap(b);
    call.server.effects.changed_all();
    call.server.blocking.signal_all(a);
    call.server.blocking.signal_all(b);
  }
  call.reply.ok();
}

void touch(const Call& call) {
  std::int64_t found = 0;
  for (std::size_t i = 1; i < call.count(); ++i) found += call.read(call[i]) != nullptr ? 1 : 0;
  call.reply.integer(found);
}

void dbsize(const Call& call) { call.reply.integer(static_cast<std::int64_t>(call.db.size())); }

bool flush_words(const Call& call) {
  if (call.count() == 1) return true;
  if (call.count() == 2 && (is_word(call[1], "ASYNC") || is_word(call[1], "SYNC"))) return true;
  call.syntax_error();
  return false;
}

void flush(const Call& call, Keyspace& db) {
  call.server.watches.touch_all(db, nullptr, call.now_ms);
  call.server.effects.changed_all(db.size());
  db.clear();
  call.server.blocking.signal_all(db);
}

void answer_flush(const Call& call) {
  // Also where there was nothing to remove: a replica or log may hold something, and is to hold nothing.
  const std::vector<RequestWord> words(call.arguments.begin(), call.arguments.end());
  call.server.effects.say(call.db.index(), words);
  if (call.server.tracking.any()) call.server.tracking.flushed();
  if (call.count() == 2 && is_word(call[1], "SYNC")) call.server.lazy_free.free_all();
  call.reply.ok();
}
void flushdb(const Call& call) {
  if (!flush_words(call)) return;
  flush(call, call.db);
  answer_flush(call);
}
void flushall(const Call& call) {
  if (!flush_words(call)) return;
  // A snapshot of the deleted data is useless. As in Redis, the file on the disk is emptied, too.
  Snapshots& snapshots = *call.server.snapshots;
  snapshots.abandon();
  for (const auto& db : call.server.databases) flush(call, *db);
  if (snapshots.has_save_points()) static_cast<void>(snapshots.save());
  answer_flush(call);
}

// OBJECT's subcommands do not count as a use of the key.
const Record* object(const Call& call) {
  const Record* record = call.db.peek(call[2], call.now_ms);
  if (record == nullptr) call.reply.null();
  return record;
}
void object_encoding(const Call& call) {
  if (const Record* record = object(call)) call.reply.bulk(record->value.encoding());
}
void object_refcount(const Call& call) {
  const Record* record = object(call);
  if (record == nullptr) return;
  // Redis shares the integers below 10000, unless each needs its own access time, and reports the largest
  // int as their reference count.
  const bool text = record->value.type() == Type::string;
  const auto number = text ? parse_int(record->value.text().view()) : std::nullopt;
  const bool shared = number && *number >= 0 && *number < 10000 &&
                      record->value.made() == Value::Made::given &&
                      !(call.server.settings.maxmemory > 0 &&
                        notes_use(static_cast<EvictionPolicy>(call.server.settings.maxmemory_policy)));
  call.reply.integer(shared ? std::numeric_limits<int>::max() : 1);
}
bool is_lfu(const Call& call) { return call.server.use_clock.notes == UseClock::Notes::frequency; }
void object_idletime(const Call& call) {
  const Record* record = object(call);
  if (record == nullptr) return;
  if (is_lfu(call)) {
    return call.reply.error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching "
        "between "
        "policies at runtime LRU and LFU data will take some time to adjust.");
  }
  const std::int64_t ticks = std::int64_t{call.server.use_clock.tick} - std::int64_t{record->accessed};
  call.reply.integer(std::max<std::int64_t>(ticks, 0) * ServerCommon::use_tick_ms / 1000);
}
void object_freq(const Call& call) {
  const Record* record = object(call);
  if (record == nullptr) return;
  if (!is_lfu(call)) {
    return call.reply.error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when "
        "switching "
        "between policies at runtime LRU and LFU data will take some time to adjust.");
  }
  call.reply.integer(call.server.use_clock.frequency(*record));
}
void object_help(const Call& call) {
  reply_help(call, {
                       "ENCODING <key>",
                       "    Return the kind of internal representation used in order to store the value",
                       "    associated with a <key>.",
                       "FREQ <key>",
                       "    Return the access frequency index of the <key>. The returned integer is",
                       "    proportional to the logarithm of the recent access frequency of the key.",
                       "IDLETIME <key>",
                       "    Return the idle time of the <key>, that is the approximated number of",
                       "    seconds elapsed since the last access to the key.",
                       "REFCOUNT <key>",
                       "    Return the number of references of the value associated with the specified",
                       "    <key>.",
                   });
}

}  // namespace

std::span<const Command> key_commands() {
  using namespace flag;
  static constexpr Command object_subcommands[] = {
      {"encoding",
       3,
       readonly,
       2,
       2,
       1,
       object_encoding,
       "generic",
       "Returns how a value is stored.",
       {},
       "object"},
      {"freq",
       3,
       readonly,
       2,
       2,
       1,
       object_freq,
       "generic",
       "Returns how often a key is used.",
       {},
       "object"},
      {"idletime",
       3,
       readonly,
       2,
       2,
       1,
       object_idletime,
       "generic",
       "Returns how long a key was not used.",
       {},
       "object"},
      {"refcount",
       3,
       readonly,
       2,
       2,
       1,
       object_refcount,
       "generic",
       "Returns a value's reference count.",
       {},
       "object"},
      {"help", 2, loading | stale, 0, 0, 0, object_help, "generic", "Explains OBJECT.", {}, "object"},
  };
  static constexpr Command commands[] = {
      {"del", -2, write, 1, -1, 1, del, "generic", "Deletes keys."},
      {"unlink", -2, write | fast, 1, -1, 1, del, "generic", "Deletes keys."},
      {"exists", -2, readonly | fast, 1, -1, 1, exists, "generic", "Counts how many of the keys exist."},
      {"type", 2, readonly | fast, 1, 1, 1, type, "generic", "Returns the type of a value."},
      {"keys", 2, readonly, 0, 0, 0, keys, "generic", "Returns the keys that match a pattern."},
      {"randomkey", 1, readonly, 0, 0, 0, randomkey, "generic", "Returns a random key."},
      {"rename", 3, write, 1, 2, 1, rename, "generic", "Renames a key."},
      {"renamenx", 3, write | fast, 1, 2, 1, renamenx, "generic",
       "Renames a key unless the new name exists."},
      {"copy", -3, write | denyoom, 1, 2, 1, copy, "generic", "Copies a value to another key."},
      {"move", 3, write | fast, 1, 1, 1, move, "generic", "Moves a key to another database."},
      {"swapdb", 3, write | fast, 0, 0, 0, swapdb, "server", "Swaps two databases."},
      {"touch", -2, readonly | fast, 1, -1, 1, touch, "generic",
       "Counts the keys that exist and marks them as used."},
      {"dbsize", 1, readonly | fast, 0, 0, 0, dbsize, "server", "Returns the number of keys."},
      {"flushdb", -1, write, 0, 0, 0, flushdb, "server", "Removes every key of the database."},
      {"flushall", -1, write, 0, 0, 0, flushall, "server", "Removes every key of every database."},
      {"object", -2, 0, 0, 0, 0, nullptr, "generic", "Looks into values.", object_subcommands},
  };
  return commands;
}

}  // namespace weir::kv
