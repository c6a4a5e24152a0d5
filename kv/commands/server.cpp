// The server as a whole: time, version, monitors.

#include "kv/call/call.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/monitors.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/text/number.hpp"

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

}  // namespace

std::span<const Command> server_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"time", 1, loading | stale | fast, 0, 0, 0, time, "server", "Returns the server's time."},
      {"lolwut", -1, readonly | fast, 0, 0, 0, lolwut, "server", "Tells the version, at leisure."},
      {"monitor", 1, admin | noscript | loading | stale, 0, 0, 0, monitor, "server", "Shows every command."},
  };
  return commands;
}

}  // namespace weir::kv
