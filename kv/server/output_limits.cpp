// client-output-buffer-limit: a client for which the server must keep more output than that is closed,
// and its output is dropped. maxmemory-clients: the largest clients are closed.
#include <algorithm>
#include <functional>
#include <vector>

#include "kv/commands/client_line.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {
// Strangers get only short errors. If these stay unsent for ten seconds, nobody is reading them.
constexpr OutputLimit strangers_output{64 << 10, 1, 10};
// The output of replicas is kept elsewhere, too: kv/replication limits it.
constexpr OutputLimit replicas_output{};
}  // namespace

const OutputLimit& Server::output_limit_of(const Client& client) const {
  if (!client.authenticated()) return strangers_output;
  if (client.is_replica()) return replicas_output;
  return client.subscriptions.any() ? settings.pubsub_output : settings.normal_output;
}

void Server::close_over_limit(Client& client) {
  log(LogLevel::warning, "closing client " + std::to_string(client.id()) + " (" +
                             client.connection().peer_address() +
                             "): " + std::to_string(client.output.size()) +
                             " bytes wait for it, more than client-output-buffer-limit allows");
  client.close();
}

void Server::close_largest_clients() {
  std::vector<Client*> largest;
  for (const auto& [id, client] : clients) {
    if (!client->no_evict && client->budgeted_bytes() != 0) largest.push_back(client.get());
  }
  std::ranges::sort(largest, std::greater(), &Client::budgeted_bytes);
  for (Client* client : largest) {
    if (!client_budget.exceeded()) return;
    log(LogLevel::notice, "Evicting client: " + describe_client(*client, now_ms));
    ++stats.evicted_clients;
    client->close();
  }
}

bool Server::limit_output(Client& client) {
  const OutputLimit& limit = output_limit_of(client);
  if (limit.hard_bytes == 0 || client.output.size() <= static_cast<std::size_t>(limit.hard_bytes))
    return false;
  close_over_limit(client);
  return true;
}

// Called after sending as much as possible.
void Server::limit_unread_output(Client& client) {
  if (limit_output(client)) return;
  const OutputLimit& limit = output_limit_of(client);
  if (limit.soft_bytes == 0 || client.output.size() <= static_cast<std::size_t>(limit.soft_bytes)) {
    client.over_soft_limit_since_ms = 0;
    return;
  }
  if (client.over_soft_limit_since_ms == 0) client.over_soft_limit_since_ms = now_ms;
  const std::int64_t due = client.over_soft_limit_since_ms + limit.soft_s * 1000;
  if (now_ms > due) return close_over_limit(client);
  // Look at the client again even if nothing more is sent to it.
  if (unread_output_due_ms_ == 0 || due + 1 < unread_output_due_ms_) unread_output_due_ms_ = due + 1;
  arm_timer();
}

void Server::close_slow_readers() {
  if (unread_output_due_ms_ == 0 || now_ms < unread_output_due_ms_) return;
  unread_output_due_ms_ = 0;
  std::vector<Client*> slow;
  for (const auto& [id, client] : clients) {
    if (client->over_soft_limit_since_ms != 0) slow.push_back(client.get());
  }
  for (Client* client : slow) limit_unread_output(*client);
}

}  // namespace weir::kv
