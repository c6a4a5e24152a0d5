// DUMP and RESTORE: one value as bytes that Redis understands as well.
#include <limits>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/core/restored.hpp"
#include "kv/rdb/dump_payload.hpp"
#include "kv/settings/deletion_word.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

void dump(const Call& call) {
  const Record* record = call.look(call[1]);
  if (record == nullptr) return call.reply.null();
  call.reply.bulk(rdb::dump(record->value, call.server.settings.dialect()));
}

// RESTORE's options after the payload.
struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
  rdb::About about;
};

// Returns false after replying with an error.
bool read_options(const Call& call, RestoreOptions& options) {
  for (std::size_t i = 4; i < call.count(); ++i) {
    const bool has_more = i + 1 < call.count();
    std::int64_t value = 0;
    if (is_word(call[i], "REPLACE")) {
      options.replace = true;
    } else if (is_word(call[i], "ABSTTL")) {
      options.absolute = true;
    } else if (is_word(call[i], "IDLETIME") && has_more && !options.about.frequency) {
      if (!call.integer(++i, value)) return false;
      if (value < 0) {
        call.reply.error("ERR Invalid IDLETIME value, must be >= 0");
        return false;
      }
      options.about.idle_s = static_cast<std::uint64_t>(value);
    } else if (is_word(call[i], "FREQ") && has_more && !options.about.idle_s) {
      if (!call.integer(++i, value)) return false;
      if (value < 0 || value > UseFrequency::most) {
        call.reply.error("ERR Invalid FREQ value, must be >= 0 and <= 255");
        return false;
      }
      options.about.frequency = static_cast<std::uint8_t>(value);
    } else {
      call.syntax_error();
      return false;
    }
  }
  return true;
}

void restore(const Call& call) {
  RestoreOptions options;
  if (!read_options(call, options)) return;
  if (!options.replace && call.write(call[1]) != nullptr)
    return call.reply.error("BUSYKEY Target key name already exists.");
  std::int64_t ttl = 0;
  if (!call.integer(2, ttl)) return;
  if (ttl < 0) return call.reply.error("ERR Invalid TTL value, must be >= 0");
  const auto held = rdb::unseal(call[3]);
  if (!held) return call.reply.error("ERR DUMP payload version or checksum are wrong");
  auto value = rdb::restore(*held, restored_limits(call.server),
                            static_cast<std::uint64_t>(call.server.settings.proto_max_bulk_len));
  if (!value) {
    call.server.log(LogLevel::verbose, "RESTORE was given a payload that is refused: " + value.error().what);
    return call.reply.error("ERR Bad data format");
  }
  if (ttl != 0 && !options.absolute) {
    if (__builtin_add_overflow(ttl, call.now_ms, &ttl)) ttl = std::numeric_limits<std::int64_t>::max();
  }
  const bool replaced = options.replace && call.write(call[1]) != nullptr;
  if (replaced) call.erase(call[1]);
  // A value that has already expired is not stored; copies of the data only need not keep the one before.
  if (ttl != 0 && ttl <= call.now_ms) {
    if (replaced) call.replay_as({deletion_word(call.server.settings.lazyfree_lazy_server_del), call[1]});
    return call.reply.ok();
  }
  Record& fresh = call.db.insert(call[1], std::move(*value));
  if (ttl != 0) call.db.set_expiry(fresh, ttl);
  note_use(call.server, fresh, options.about);
  call.changed(call[1]);
  if (ttl != 0 && call.heard()) {
    // A copy of the data may apply this later, so the expiry is given as an absolute time.
    const std::string until = std::to_string(ttl);
    call.replay_as({"RESTORE", call[1], until, call[3], "ABSTTL", "REPLACE"});
  }
  call.reply.ok();
}

}  // namespace

std::span<const Command> dump_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"dump", 2, readonly, 1, 1, 1, dump, "generic", "Returns a value as bytes that RESTORE takes."},
      {"restore", -4, write | denyoom, 1, 1, 1, restore, "generic", "Makes a key of what DUMP returned."},
      {"restore-asking", -4, write | denyoom | asking, 1, 1, 1, restore, "server",
       "Makes a key of what DUMP returned."},
  };
  return commands;
}

}  // namespace weir::kv
