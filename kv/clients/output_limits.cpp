#include "kv/clients/output_limits.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "kv/clients/client.hpp"
#include "kv/clients/client_line.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"

namespace weir::kv {

namespace {
// Strangers get only short errors. If these stay unsent for ten seconds, nobody is reading them.
constexpr OutputLimit strangers_output{64 << 10, 1, 10};
// The output of replicas is kept elsewhere, too: kv/replication limits it.
constexpr OutputLimit replicas_output{};
}  // namespace

const OutputLimit& OutputLimits::limit_of(const Client& client) const {
  if (!client.authenticated()) return strangers_output;
  if (client.is_replica()) return replicas_output;
  return client.subscriptions.any() ? server_.settings.pubsub_output : server_.settings.normal_output;
}

void OutputLimits::close(Client& client) {
  server_.log(LogLevel::warning, "closing client " + std::to_string(client.id()) + " (" +
                                     client.connection().peer_address() +
                                     "): " + std::to_string(client.output.size()) +
                                     " bytes wait for it, more than client-output-buffer-limit allows");
  client.close();
}

void OutputLimits::close_largest() {
  std::vector<Client*> largest;
  for (const auto& [id, client] : server_.clients) {
    if (!client->no_evict && client->budgeted_bytes() != 0) largest.push_back(client.get());
  }
  std::ranges::sort(largest, std::greater(), &Client::budgeted_bytes);
  for (Client* client : largest) {
    if (!server_.client_budget.exceeded()) return;
    server_.log(LogLevel::notice, "Evicting client: " + describe_client(*client, server_.steady_ms));
    ++server_.stats.evicted_clients;
    client->close();
  }
}

bool OutputLimits::limit(Client& client) {
  const OutputLimit& most = limit_of(client);
  if (most.hard_bytes == 0 || client.output.size() <= static_cast<std::size_t>(most.hard_bytes)) return false;
  close(client);
  return true;
}

void OutputLimits::limit_unread(Client& client) {
  if (limit(client)) return;
  const OutputLimit& most = limit_of(client);
  if (most.soft_bytes == 0 || client.output.size() <= static_cast<std::size_t>(most.soft_bytes)) {
    client.traffic.over_soft_limit_since_ms = 0;
    return;
  }
  if (client.traffic.over_soft_limit_since_ms == 0)
    client.traffic.over_soft_limit_since_ms = server_.steady_ms;
  const std::int64_t due = client.traffic.over_soft_limit_since_ms + most.soft_s * 1000;
  if (server_.steady_ms > due) return close(client);
  // Look at the client again even if nothing more is sent to it.
  if (due_ms_ == 0 || due + 1 < due_ms_) due_ms_ = due + 1;
  whole_.arm_timer();
}

void OutputLimits::close_slow_readers() {
  if (due_ms_ == 0 || server_.steady_ms < due_ms_) return;
  due_ms_ = 0;
  std::vector<Client*> slow;
  for (const auto& [id, client] : server_.clients) {
    if (client->traffic.over_soft_limit_since_ms != 0) slow.push_back(client.get());
  }
  for (Client* client : slow) limit_unread(*client);
}

}  // namespace weir::kv
