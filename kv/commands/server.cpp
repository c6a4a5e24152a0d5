// The server as a whole: time, shutdown, and small reports.
#include "kv/server/server.hpp"

#include "kv/commands/command.hpp"

namespace weir::kv {

namespace {

void time(const Call& call) {
  call.server.refresh_time();
  call.reply.array(2);
  call.reply.bulk_int(call.server.now_us / 1000000);
  call.reply.bulk_int(call.server.now_us % 1000000);
}

void shutdown(const Call& call) {
  for (std::size_t i = 1; i < call.count(); ++i) {
    const bool known = is_word(call[i], "NOSAVE") || is_word(call[i], "SAVE") || is_word(call[i], "NOW") ||
                       is_word(call[i], "FORCE") || is_word(call[i], "ABORT");
    if (!known) return call.syntax_error();
  }
  if (call.count() == 2 && is_word(call[1], "ABORT")) return call.reply.error("ERR No shutdown in progress.");
  call.server.log(LogLevel::warning, "a client asked for SHUTDOWN");
  call.client.close_after_reply = true;
  if (call.server.surroundings.stop) call.server.surroundings.stop();
}

using namespace flag;
constexpr Command commands[] = {
    {"time", 1, loading | stale | fast, 0, 0, 0, time, "server", "Returns the server's time."},
    {"shutdown", -1, admin | noscript | no_multi | loading | stale | allow_busy, 0, 0, 0, shutdown, "server",
     "Stops the server."},
};

}  // namespace

std::span<const Command> server_commands() { return commands; }

}  // namespace weir::kv
