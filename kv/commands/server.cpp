// The server as a whole: time, role, monitors, the slow log.
#include "kv/server/server.hpp"

#include "kv/commands/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/number.hpp"

namespace weir::kv {

namespace {

void time(const Call& call) {
  call.client.refresh_time();
  call.reply.array(2);
  call.reply.bulk_int(call.server.now_us / 1000000);
  call.reply.bulk_int(call.server.now_us % 1000000);
}

// Without Redis's picture.
void lolwut(const Call& call) {
  std::int64_t version = 0;
  if (call.count() >= 3 && is_word(call[1], "VERSION") && !call.integer(2, version)) return;
  call.reply.verbatim("txt", "Redis ver. " WEIR_REDIS_VERSION "\n");
}

void monitor(const Call& call) {
  if (call.client.in_exec) return call.reply.error("ERR MONITOR isn't allowed for DENY BLOCKING client");
  if (call.client.monitors) return;  // like Redis, which sends a monitor no second reply
  call.server.monitors.add(call.client);
  call.reply.ok();
}

void slowlog_get(const Call& call) {
  if (call.count() > 3) return call.subcommand_error();
  std::int64_t count = 10;
  if (call.count() == 3) {
    const auto parsed = parse_int(call[2]);
    if (!parsed || *parsed < -1) return call.reply.error("ERR count should be greater than or equal to -1");
    count = *parsed;
  }
  const auto& entries = call.server.slow_work.log.entries();
  const std::size_t n =
      count < 0 ? entries.size() : std::min(entries.size(), static_cast<std::size_t>(count));
  call.reply.array(n);
  for (std::size_t i = 0; i < n; ++i) {
    const SlowLog::Entry& entry = entries[i];
    call.reply.array(6);
    call.reply.integer(static_cast<std::int64_t>(entry.id));
    call.reply.integer(entry.time_s);
    call.reply.integer(entry.duration_us);
    call.reply.array(entry.words.size());
    for (const std::string& word : entry.words) call.reply.bulk(word);
    call.reply.bulk(entry.peer);
    call.reply.bulk(entry.client_name);
  }
}
void slowlog_len(const Call& call) {
  call.reply.integer(static_cast<std::int64_t>(call.server.slow_work.log.entries().size()));
}
void slowlog_reset(const Call& call) {
  call.server.slow_work.log.clear();
  call.reply.ok();
}
void slowlog_help(const Call& call) {
  reply_help(call, {
                       "GET [<count>]",
                       "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
                       "    Entries are made of:",
                       "    id, timestamp, time in microseconds, arguments array, client IP and port,",
                       "    client name",
                       "LEN",
                       "    Return the length of the slowlog.",
                       "RESET",
                       "    Reset the slowlog.",
                   });
}

}  // namespace

std::span<const Command> server_commands() {
  using namespace flag;
  constexpr std::uint32_t managing = admin | loading | stale;
  static constexpr Command slowlog_subcommands[] = {
      {"get", -2, managing, 0, 0, 0, slowlog_get, "server", "Returns slow commands.", {}, "slowlog"},
      {"len", 2, managing, 0, 0, 0, slowlog_len, "server", "Counts slow commands.", {}, "slowlog"},
      {"reset", 2, managing, 0, 0, 0, slowlog_reset, "server", "Forgets slow commands.", {}, "slowlog"},
      {"help", 2, loading | stale, 0, 0, 0, slowlog_help, "server", "Explains SLOWLOG.", {}, "slowlog"},
  };
  static constexpr Command commands[] = {
      {"time", 1, loading | stale | fast, 0, 0, 0, time, "server", "Returns the server's time."},
      {"lolwut", -1, readonly | fast, 0, 0, 0, lolwut, "server", "Tells the version, at leisure."},
      {"monitor", 1, admin | noscript | loading | stale, 0, 0, 0, monitor, "server", "Shows every command."},
      {"slowlog", -2, 0, 0, 0, 0, nullptr, "server", "Looks at slow commands.", slowlog_subcommands},
  };
  return commands;
}

}  // namespace weir::kv
