// DEBUG: what tests ask of a server. The setting enable-debug-command lets clients in; without it none may.
#include "kv/commands/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/server/server.hpp"
#include "kv/store/digest.hpp"

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

void debug_help(const Call& call) {
  reply_help(call, {
                       "DIGEST",
                       "    Output a hex signature representing the current DB content.",
                       "DIGEST-VALUE <key> [<key> ...]",
                       "    Output a hex signature of the values of all the specified keys.",
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
    {"help", 2, 2, debug_help},
};

// To Redis these are words of one command, which COMMAND shows.
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
