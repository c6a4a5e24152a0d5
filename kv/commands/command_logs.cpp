// SLOWLOG and COMMANDLOG: the commands that took long, and those whose request or reply was large.
#include <array>
#include <optional>

#include "kv/call/call.hpp"
#include "kv/clients/slow_work.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

using CommandLog = SlowWork::Log;

void reply_entries(const Call& call, CommandLog which, std::string_view most) {
  const auto count = parse_int(most);
  if (!count || *count < -1) return call.reply.error("ERR count should be greater than or equal to -1");
  const auto& entries = call.server.slow_work.log(which).entries();
  const std::size_t n =
      *count < 0 ? entries.size() : std::min(entries.size(), static_cast<std::size_t>(*count));
  call.reply.array(n);
  for (std::size_t i = 0; i < n; ++i) {
    const SlowLog::Entry& entry = entries[i];
    call.reply.array(6);
    call.reply.integer(static_cast<std::int64_t>(entry.id));
    call.reply.integer(entry.time_s);
    call.reply.integer(entry.amount);
    call.reply.array(entry.words.size());
    for (const std::string& word : entry.words) call.reply.bulk(word);
    call.reply.bulk(entry.peer);
    call.reply.bulk(entry.client_name);
  }
}

void reply_length(const Call& call, CommandLog which) {
  call.reply.integer(static_cast<std::int64_t>(call.server.slow_work.log(which).entries().size()));
}

void forget(const Call& call, CommandLog which) {
  call.server.slow_work.log(which).clear();
  call.reply.ok();
}

void slowlog_get(const Call& call) {
  if (call.count() > 3) return call.subcommand_error();
  reply_entries(call, CommandLog::slow, call.count() == 3 ? call[2] : "10");
}
void slowlog_len(const Call& call) { reply_length(call, CommandLog::slow); }
void slowlog_reset(const Call& call) { forget(call, CommandLog::slow); }
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

std::optional<CommandLog> log_named(const Call& call, std::size_t argument) {
  constexpr std::array names{"slow", "large-request", "large-reply"};  // in the order of CommandLog
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_word(call[argument], names[i])) return static_cast<CommandLog>(i);
  }
  call.reply.error("ERR type should be one of the following: slow, large-request, large-reply");
  return std::nullopt;
}

void commandlog_get(const Call& call) {
  if (const auto which = log_named(call, 3)) reply_entries(call, *which, call[2]);
}
void commandlog_len(const Call& call) {
  if (const auto which = log_named(call, 2)) reply_length(call, *which);
}
void commandlog_reset(const Call& call) {
  if (const auto which = log_named(call, 2)) forget(call, *which);
}
void commandlog_help(const Call& call) {
  reply_help(call, {
                       "GET <count> (slow|large-request|large-reply)",
                       "    Return the newest <count> entries of that log (-1: all): id, timestamp,",
                       "    microseconds or bytes, arguments, client IP and port, client name.",
                       "LEN (slow|large-request|large-reply)",
                       "    Return the length of that log.",
                       "RESET (slow|large-request|large-reply)",
                       "    Empty that log.",
                   });
}

}  // namespace

std::span<const Command> command_log_commands() {
  using namespace flag;
  constexpr std::uint32_t managing = admin | loading | stale;
  static constexpr Command slowlog_subcommands[] = {
      {"get", -2, managing, 0, 0, 0, slowlog_get, "server", "Returns slow commands.", {}, "slowlog"},
      {"len", 2, managing, 0, 0, 0, slowlog_len, "server", "Counts slow commands.", {}, "slowlog"},
      {"reset", 2, managing, 0, 0, 0, slowlog_reset, "server", "Forgets slow commands.", {}, "slowlog"},
      {"help", 2, loading | stale, 0, 0, 0, slowlog_help, "server", "Explains SLOWLOG.", {}, "slowlog"},
  };
  static constexpr Command commandlog_subcommands[] = {
      {"get", 4, managing, 0, 0, 0, commandlog_get, "server", "Returns a log.", {}, "commandlog"},
      {"len", 3, managing, 0, 0, 0, commandlog_len, "server", "Counts a log's entries.", {}, "commandlog"},
      {"reset", 3, managing, 0, 0, 0, commandlog_reset, "server", "Empties a log.", {}, "commandlog"},
      {"help", 2, loading | stale, 0, 0, 0, commandlog_help, "server", "Explains it.", {}, "commandlog"},
  };
  static constexpr Command commands[] = {
      {"slowlog", -2, 0, 0, 0, 0, nullptr, "server", "Looks at slow commands.", slowlog_subcommands},
      {"commandlog", -2, 0, 0, 0, 0, nullptr, "server", "Looks at slow and large commands.",
       commandlog_subcommands},
  };
  return commands;
}

}  // namespace weir::kv
