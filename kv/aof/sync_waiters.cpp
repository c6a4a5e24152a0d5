#include "kv/aof/sync_waiters.hpp"

#include <utility>

#include "kv/call/server_parts.hpp"
#include "kv/clients/client.hpp"
#include "kv/replication/replication.hpp"

namespace weir::kv::aof {

void SyncWaiters::add(ServerParts& server, const Client& client) {
  constexpr std::size_t few = 32;
  if (waiting_.size() >= sort_out_at_) {
    std::erase_if(waiting_, [&](const Waiting& one) {
      return one.client == client.id() || still_there(server, one) == nullptr;
    });
    sort_out_at_ = 2 * (waiting_.size() + few);
  }
  waiting_.push_back({client.id(), client.blocked->log_position});
}

// Null: the client ended or continued. If it waits again, that wait has its own entry.
Client* SyncWaiters::still_there(ServerParts& server, const Waiting& one) {
  const auto it = server.clients.find(one.client);
  if (it == server.clients.end()) return nullptr;
  Client* const client = it->second.get();
  const bool waits = client->blocked != nullptr && client->blocked->command->name == "waitaof" &&
                     client->blocked->log_position == one.position;
  return waits ? client : nullptr;
}

void SyncWaiters::serve(ServerParts& server, std::uint64_t synced) {
  while (!waiting_.empty() && waiting_.front().position <= synced) {
    Client* const client = still_there(server, waiting_.front());
    waiting_.pop_front();
    if (client == nullptr) continue;
    repl::Replicas& replicas = server.replication->replicas();
    if (replicas.count_synced(client->blocked->position) < client->blocked->replicas)
      replicas.wait_for(*client);
    else
      server.blocking.give_up(*client);
  }
}

void SyncWaiters::fail(ServerParts& server, std::string_view error) {
  for (const Waiting& one : std::exchange(waiting_, {})) {
    Client* const client = still_there(server, one);
    if (client == nullptr) continue;
    server.blocking.fail(*client, error);
    server.blocking.release(*client);
    client->will_resume();
  }
}

}  // namespace weir::kv::aof
