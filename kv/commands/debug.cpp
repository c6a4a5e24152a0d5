// DEBUG: commands for tests. The setting enable-debug-command allows them; without it no client may.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "kv/aof/append_only.hpp"
#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/persistence/loading.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/rdb/encoded.hpp"
#include "kv/rdb/value_encoder.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/store/digest.hpp"
#include "kv/text/glob.hpp"

namespace weir::kv {

namespace {

void debug_digest(const Call& call) { call.reply.simple(digest_of(call.server.databases).hex()); }

void debug_digest_value(const Call& call) {
  call.reply.array(call.count() - 2);
  for (std::size_t i = 2; i < call.count(); ++i) {
    Digest digest;
    if (const Record* record = call.db.peek(call[i], call.now_ms)) mix_value(digest, *record);
    call.reply.simple(digest.hex());
  }
}

// Blocks the whole server, on purpose. As in Redis, what follows the number is ignored: hiredis's tests send
// "0\r\n".
void debug_sleep(const Call& call) {
  const double seconds = std::strtod(std::string(call[2]).c_str(), nullptr);
  if (std::isnan(seconds)) return call.reply.error("ERR value is not a valid float");
  constexpr double most_s = 60;
  std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(seconds, 0.0, most_s)));
  call.reply.ok();
}

void debug_set_active_expire(const Call& call) {
  call.server.expires_in_time = call[2] != "0";
  call.server.arm_timer();
  call.reply.ok();
}

void debug_set_disable_deny_scripts(const Call& call) {
  call.server.scripts->denies = call[2] == "0";
  call.reply.ok();
}

// Makes the keys "key:0" and up, whose values contain their number; existing keys stay.
void debug_populate(const Call& call) {
  std::int64_t count = 0;
  std::int64_t size = 0;
  if (!call.integer(2, count) || (call.count() == 5 && !call.integer(4, size))) return;
  const std::string prefix(call.count() > 3 ? call[3] : "key");
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string key = prefix + ':' + std::to_string(i);
    if (call.write(key) != nullptr) continue;
    std::string value = "value:" + std::to_string(i);
    if (size > 0) value.resize(static_cast<std::size_t>(size));
    call.db.insert(key).value.assign(value);
    call.changed(key);
    if (call.heard()) call.replay_as({"SET", key, value});
  }
  call.reply.ok();
}

// Does to the data what a restart does: saves a snapshot and loads it.
void debug_reload(const Call& call) {
  bool saves = true;
  bool flushes = true;
  Existing existing = Existing::refused;
  for (const Argument& word : call.arguments.subspan(2)) {
    if (is_word(word.text, "NOSAVE")) {
      saves = false;
    } else if (is_word(word.text, "NOFLUSH")) {
      flushes = false;
    } else if (is_word(word.text, "MERGE")) {
      existing = Existing::replaced;
    } else {
      return call.reply.error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
    }
  }
  ServerParts& server = call.server;
  if (server.snapshots->running()) return call.reply.error("ERR Background save already in progress");
  if (saves && !server.snapshots->save()) return call.reply.error("ERR");
  if (flushes) {
    for (const auto& db : server.databases) db->clear();
    server.scripts->flush_libraries();
  }
  const auto loaded = load_snapshot(server, [] { return true; }, existing);
  if (!loaded || *loaded != LoadResult::loaded) {
    return call.reply.error("ERR Error trying to load the RDB dump, check server logs");
  }
  call.reply.ok();
}

// Likewise, with the log.
void debug_loadaof(const Call& call) {
  const auto done = call.server.append_only->load_again();
  done ? call.reply.ok() : call.reply.error("ERR Error trying to load the AOF files: " + done.error());
}

void debug_object(const Call& call) {
  // Also one that has expired and is still there.
  const Record* record = call.db.records().find(call[2]);
  if (record == nullptr) return call.reply.error("ERR no such key");
  rdb::Encoded encoded;
  rdb::put_value(encoded, record->value);
  std::string bytes;
  encoded.finish(rdb::Compression::none, bytes);
  call.reply.simple("Value at:0x0 refcount:1 encoding:" + std::string(record->value.encoding()) +
                    " serializedlength:" + std::to_string(bytes.size()) +
                    " lru:" + std::to_string(record->accessed) + " lru_seconds_idle:0");
}

// Matches a pattern that could take very long against a text of that length.
void debug_stringmatch_len(const Call& call) {
  std::int64_t length = 0;
  if (!call.integer(2, length)) return;
  constexpr std::int64_t most = 1 << 24;
  const std::string text(static_cast<std::size_t>(std::clamp<std::int64_t>(length, 0, most)), 'a');
  glob_match(call[3], text);
  call.reply.ok();
}

// Replies with one reply of each type, for testing clients.
void debug_protocol(const Call& call) {
  Reply& reply = call.reply;
  const std::string_view type = call[2];
  if (is_word(type, "STRING")) return reply.bulk("Hello World");
  if (is_word(type, "INTEGER")) return reply.integer(12345);
  if (is_word(type, "DOUBLE")) return reply.real(3.141);
  if (is_word(type, "NULL")) return reply.null();
  if (is_word(type, "TRUE") || is_word(type, "FALSE")) return reply.boolean(is_word(type, "TRUE"));
  if (is_word(type, "VERBATIM")) return reply.verbatim("txt", "This is a verbatim\nstring");
  if (is_word(type, "BIGNUM")) {
    constexpr std::string_view digits = "1234567999999999999999999999999999999";
    return reply.resp3() ? reply.raw("(" + std::string(digits) + "\r\n") : reply.bulk(digits);
  }
  if (is_word(type, "ARRAY") || is_word(type, "SET")) {
    is_word(type, "SET") ? reply.set(3) : reply.array(3);
    for (int i = 0; i < 3; ++i) reply.integer(i);
    return;
  }
  if (is_word(type, "MAP")) {
    reply.map(3);
    for (int i = 0; i < 3; ++i) {
      reply.integer(i);
      reply.boolean(i == 1);
    }
    return;
  }
  if (is_word(type, "ATTRIB")) {
    if (reply.resp3()) {
      reply.raw("|1\r\n");
      reply.bulk("key-popularity");
      reply.array(2);
      reply.bulk("key:123");
      reply.integer(90);
    }
    return reply.bulk("Some real reply following the attribute");
  }
  if (is_word(type, "PUSH")) {
    reply.push(2);
    reply.bulk("server-cpu-usage");
    return reply.integer(42);
  }
  reply.error(
      "ERR Wrong protocol type name. Please use one of the following: "
      "string|integer|double|null|array|set|map|attrib|push|verbatim|true|false");
}

void debug_error(const Call& call) { call.reply.error(call[2]); }
// Accepts and ignores settings for features that do not exist here: lists of quicklist nodes, a cron (timers
// run only when something is due).
void debug_ignored(const Call& call) { call.reply.ok(); }

void debug_help(const Call& call) {
  reply_help(call, {
                       "DIGEST",
                       "    Output a hex signature representing the current DB content.",
                       "DIGEST-VALUE <key> [<key> ...]",
                       "    Output a hex signature of the values of all the specified keys.",
                       "ERROR <string>",
                       "    Return a Redis protocol error with <string> as message. Useful for clients",
                       "    unit tests to simulate Redis errors.",
                       "LOADAOF",
                       "    Flush the AOF buffers on disk and reload the AOF in memory.",
                       "OBJECT <key>",
                       "    Show low level info about `key` and associated value.",
                       "POPULATE <count> [<prefix>] [<size>]",
                       "    Create <count> string keys named key:<num>. If <prefix> is specified then",
                       "    it is used instead of the 'key' prefix.",
                       "PROTOCOL <type>",
                       "    Reply with a test value of the specified type. <type> can be: string,",
                       "    integer, double, null, array, set, map, attrib, push, verbatim, true,",
                       "    false.",
                       "RELOAD [option ...]",
                       "    Save the RDB on disk and reload it back to memory. Valid <option> values:",
                       "    * MERGE, NOFLUSH, NOSAVE.",
                       "SET-ACTIVE-EXPIRE <0|1>",
                       "    Setting it to 0 disables expiring keys (and hash-fields) in background ",
                       "    when they are not accessed (otherwise the Redis behavior).",
                       "SET-DISABLE-DENY-SCRIPTS <0|1>",
                       "    (1) lets scripts call commands that are not for scripts.",
                       "SLEEP <seconds>",
                       "    Stop the server for <seconds>. Decimals allowed.",
                       "STRINGMATCH-LEN <len> <pattern>",
                       "    Run a matching of the pattern against a text of that length.",
                   });
}

struct DebugSubcommand {
  std::string_view name;
  std::size_t least_words, most_words;
  void (*run)(const Call&);
};
constexpr DebugSubcommand debug_subcommands[] = {
    {"digest", 2, 2, debug_digest},
    {"digest-value", 2, SIZE_MAX, debug_digest_value},
    {"error", 3, 3, debug_error},
    {"help", 2, 2, debug_help},
    {"loadaof", 2, 2, debug_loadaof},
    {"object", 3, 4, debug_object},
    {"pause-cron", 3, 3, debug_ignored},
    {"populate", 3, 5, debug_populate},
    {"protocol", 3, 3, debug_protocol},
    {"quicklist-packed-threshold", 3, 3, debug_ignored},
    {"reload", 2, 5, debug_reload},
    {"set-active-expire", 3, 3, debug_set_active_expire},
    {"set-disable-deny-scripts", 3, 3, debug_set_disable_deny_scripts},
    {"sleep", 3, 3, debug_sleep},
    {"stringmatch-len", 4, 4, debug_stringmatch_len},
};

// To Redis these are words of a single command, and COMMAND shows it that way.
void debug(const Call& call) {
  for (const DebugSubcommand& one : debug_subcommands) {
    if (!is_word(call[1], one.name)) continue;
    if (call.count() < one.least_words || call.count() > one.most_words) break;
    return one.run(call);
  }
  call.subcommand_error();
}

}  // namespace

std::span<const Command> debug_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"debug", -2, admin | noscript | loading | stale | needs_permission, 0, 0, 0, debug, "server",
       "Answers what tests ask."},
  };
  return commands;
}

}  // namespace weir::kv
