#include "kv/clients/client_line.hpp"

#include "kv/acl/users.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/tracking_mode.hpp"
#include "kv/command/command.hpp"

namespace weir::kv {

std::string client_flags(const Client& client) {
  std::string flags;
  if (client.is_replica()) flags += 'S';
  if (client.monitors) flags += 'O';
  if (client.subscriptions.any()) flags += 'P';
  if (client.transaction.open) flags += 'x';
  if (client.blocked || client.paused()) flags += 'b';
  if (client.transaction.broken) flags += 'd';
  if (client.close_after_reply) flags += 'c';
  if (client.tracking != nullptr) {
    flags += 't';
    if (client.tracking->broken) flags += 'R';
    if (client.tracking->broadcast) flags += 'B';
  }
  if (client.connection().kind() == "unix") flags += 'U';
  if (client.no_evict) flags += 'e';
  if (client.no_touch) flags += 'T';
  return flags.empty() ? "N" : flags;
}

std::string describe_client(const Client& client, std::int64_t now_ms) {
  std::string line;
  auto add = [&line](std::string_view name, const std::string& value) {
    if (!line.empty()) line += ' ';
    line.append(name).append(1, '=').append(value);
  };
  const Connection& connection = client.connection();
  const Subscriptions& subscribed = client.subscriptions;
  const std::size_t in = client.input().unexecuted_bytes();
  const std::size_t out = client.output.size();
  add("id", std::to_string(client.id()));
  add("addr", connection.peer_address());
  add("laddr", connection.local_address());
  add("fd", std::to_string(connection.descriptor()));
  add("name", client.name);
  add("age", std::to_string((now_ms - client.created_ms) / 1000));
  add("idle", std::to_string((now_ms - client.active_ms) / 1000));
  add("flags", client_flags(client));
  add("capa", client.program.redirects ? "r" : "");
  add("db", std::to_string(client.db));
  add("sub", std::to_string(subscribed.channels.size()));
  add("psub", std::to_string(subscribed.patterns.size()));
  add("ssub", std::to_string(subscribed.shard_channels.size()));
  add("multi", client.transaction.open ? std::to_string(client.transaction.queued.size()) : "-1");
  add("watch", std::to_string(client.transaction.watched.size()));
  add("qbuf", std::to_string(in));
  add("qbuf-free", std::to_string(client.input().free_bytes()));
  add("argv-mem", std::to_string(client.input().argument_bytes()));
  add("multi-mem", std::to_string(client.transaction.queued_bytes));
  add("rbs", std::to_string(BlockPool::block_size));
  add("rbp", std::to_string(out));
  add("obl", std::to_string(out));
  add("oll", "0");
  add("omem", std::to_string(out));
  add("tot-mem", std::to_string(client.memory()));
  add("events", client.takes_requests() ? "r" : "rw");
  add("cmd", client.last_command == nullptr ? "NULL" : client.last_command->full_name());
  add("user", client.user->name());
  add("redir", client.tracking == nullptr ? "-1" : std::to_string(client.tracking->redirect));
  add("resp", client.reply.resp3() ? "3" : "2");
  add("lib-name", client.program.library);
  add("lib-ver", client.program.version);
  add("tot-net-in", std::to_string(client.traffic.bytes_in));
  add("tot-net-out", std::to_string(client.traffic.bytes_out));
  add("tot-cmds", std::to_string(client.traffic.commands));
  return line;
}

}  // namespace weir::kv
