// Snapshots on the disk, and the shutdown of the server, which takes one.
#include "kv/call/call.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/replication/replication.hpp"

namespace weir::kv {

namespace {

void save(const Call& call) {
  Snapshots& snapshots = *call.server.snapshots;
  if (snapshots.lent_to_log()) return call.reply.error("ERR The log is being rewritten: try again later");
  if (snapshots.busy()) return call.reply.error("ERR Background save already in progress");
  if (!snapshots.save()) return call.reply.error("ERR");
  call.reply.ok();
}

// SCHEDULE postpones the snapshot while the log is being rewritten.
void bgsave(const Call& call) {
  if (call.count() > 2 || (call.count() == 2 && !is_word(call[1], "SCHEDULE"))) return call.syntax_error();
  Snapshots& snapshots = *call.server.snapshots;
  if (snapshots.lent_to_log()) {
    if (call.count() == 2) return snapshots.start_soon(), call.reply.simple("Background saving scheduled");
    return call.reply.error(
        "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to "
        "schedule a BGSAVE whenever possible.");
  }
  if (const auto begun = snapshots.start(); !begun) return call.reply.error("ERR " + begun.error());
  call.reply.simple("Background saving started");
}

// Clients take it for a time, so it is never 0. INFO says whether there was a save.
void lastsave(const Call& call) {
  const std::int64_t last_s = call.server.snapshots->state().last_save_s;
  call.reply.integer(last_s != 0 ? last_s : call.server.started_ms / 1000);
}

struct ShutdownWords {
  bool save = false, nosave = false, now = false, force = false, abort = false;
};

// Returns false after replying with an error.
bool read_words(const Call& call, ShutdownWords& words) {
  const std::pair<std::string_view, bool*> known[] = {{"SAVE", &words.save},
                                                      {"NOSAVE", &words.nosave},
                                                      {"NOW", &words.now},
                                                      {"FORCE", &words.force},
                                                      {"ABORT", &words.abort}};
  for (const Argument& word : call.arguments.subspan(1)) {
    bool found = false;
    for (const auto& [name, set] : known) {
      if (!is_word(word.text, name)) continue;
      *set = found = true;
    }
    if (!found) return call.syntax_error(), false;
  }
  const bool other = words.save || words.nosave || words.now || words.force;
  if ((words.save && words.nosave) || (words.abort && other)) return call.syntax_error(), false;
  return true;
}

void shutdown(const Call& call) {
  ShutdownWords words;
  if (!read_words(call, words)) return;
  repl::Shutdown& shutdown = call.server.replication->shutdown();
  if (words.abort)
    return shutdown.abort() ? call.reply.ok() : call.reply.error("ERR No shutdown in progress.");
  call.server.log(LogLevel::warning, "a client asked for SHUTDOWN");
  const auto wish = words.save ? EndWish::save : words.nosave ? EndWish::nothing : EndWish::as_configured;
  const repl::Shutdown::Order order{wish, words.now, words.force};
  switch (shutdown.begin(order)) {
    case repl::Shutdown::Begun::stopped:
      call.client.close_after_reply = true;
      return;
    case repl::Shutdown::Begun::waits:
      return call.server.wait_for(call, {}, 0, NullForm::single);
    case repl::Shutdown::Begun::failed:
      return call.reply.error(repl::Shutdown::failed);
  }
}

}  // namespace

std::span<const Command> persistence_commands() {
  using namespace flag;
  constexpr std::uint32_t saves = admin | noscript | no_async_loading;
  static constexpr Command commands[] = {
      {"save", 1, saves | no_multi, 0, 0, 0, save, "server",
       "Takes a snapshot, and serves nobody meanwhile."},
      {"bgsave", -1, saves, 0, 0, 0, bgsave, "server", "Takes a snapshot in the background."},
      {"lastsave", 1, loading | stale | fast, 0, 0, 0, lastsave, "server",
       "Tells when the last snapshot was complete."},
      {"shutdown", -1, admin | noscript | no_multi | loading | stale | allow_busy, 0, 0, 0, shutdown,
       "server", "Stops the server."},
  };
  return commands;
}

}  // namespace weir::kv
