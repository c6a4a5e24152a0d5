// The append-only log: rewriting it, and waiting until it is on the disk.
#include "kv/aof/append_only.hpp"

#include <limits>

#include "kv/call/call.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/replication/replication.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

void bgrewriteaof(const Call& call) {
  using aof::AppendOnly;
  constexpr std::string_view scheduled = "Background append only file rewriting scheduled";
  AppendOnly& log = *call.server.append_only;
  if (call.client.in_exec && !log.rewriting()) return log.rewrite_soon(), call.reply.simple(scheduled);
  const auto begun = log.rewrite();
  if (!begun) return call.reply.error("ERR " + begun.error());
  call.reply.simple(*begun == AppendOnly::Begun::now ? "Background append only file rewriting started"
                                                     : scheduled);
}

// WAITAOF numlocal numreplicas timeout, as in Redis 7.2. It waits for this server's own disk first, then for
// those of replicas.
void waitaof(const Call& call) {
  std::int64_t local = 0;
  std::int64_t replicas = 0;
  if (!call.integer(1, local) || !call.integer(2, replicas)) return;
  if (local < 0 || local > 1) return call.reply.error("ERR value is out of range, must be between 0 and 1");
  if (replicas < 0) return call.reply.error("ERR value is out of range, must be positive");
  const auto ms = parse_int(call[3]);
  if (!ms) return call.reply.error("ERR timeout is not an integer or out of range");
  if (*ms < 0) return call.reply.error("ERR timeout is negative");
  if (call.server.replication->follows())
    return call.reply.error(
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are "
        "just "
        "local and are not propagated.");
  aof::AppendOnly& log = *call.server.append_only;
  if (local == 1 && !log.on())
    return call.reply.error("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  const bool synced = log.on() && log.synced();
  repl::Replicas& all = call.server.replication->replicas();
  const std::int64_t position = call.server.replication->history().end();
  const std::int64_t have = all.count_synced(position);
  const bool wait_for_own = local == 1 && !synced;
  if ((!wait_for_own && have >= replicas) || call.client.in_exec) {
    call.reply.array(2);
    call.reply.integer(synced ? 1 : 0);
    return call.reply.integer(have);
  }
  const bool for_ever = *ms > std::numeric_limits<std::int64_t>::max() - call.server.steady_ms;
  call.server.wait_for(call, {}, for_ever ? 0 : *ms, NullForm::array);
  BlockedOn& wait = *call.client.blocked;
  wait.replicas = replicas;
  wait.position = position;
  wait.log_position = log.on() ? log.position() : 0;
  wait_for_own ? log.wait_for_sync(call.client) : all.wait_for(call.client);
}

}  // namespace

std::span<const Command> append_only_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"bgrewriteaof", 1, admin | noscript | no_async_loading, 0, 0, 0, bgrewriteaof, "server",
       "Writes the append-only log anew."},
      {"waitaof", 4, noscript, 0, 0, 0, waitaof, "generic",
       "Waits until the append-only log is on the disk."},
  };
  return commands;
}

}  // namespace weir::kv
