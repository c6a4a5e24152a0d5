#include "kv/replication/shutdown.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "kv/clients/blocked_on.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/client_pause.hpp"
#include "kv/command/command.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"
#include "kv/replication/replicas.hpp"

namespace weir::kv::repl {

Shutdown::Shutdown(ServerCommon& server, ServerWhole& whole, Blocking& blocking, Snapshots& snapshots,
                   Replicas& replicas)
    : server_(server),
      whole_(whole),
      blocking_(blocking),
      snapshots_(snapshots),
      replicas_(replicas),
      timer_(server.io) {}

Shutdown::Begun Shutdown::begin(const Order& order) {
  if (waits_ && !order.now) return Begun::waits;
  if (waits_) {
    if (order.wish != EndWish::as_configured) order_.wish = order.wish;
    order_.force |= order.force;
    return finish();
  }
  order_ = order;
  position_ = server_.history.end();
  const std::int64_t most_s = server_.settings.shutdown_timeout_s;
  const std::size_t lagging = replicas_.lagging(position_).size();
  if (order.now || most_s == 0 || lagging == 0) return finish();
  server_.log(LogLevel::notice, "before stopping, waiting for " + std::to_string(lagging) +
                                    " replicas that lag, for " + std::to_string(most_s) +
                                    " seconds at most (shutdown-timeout)");
  waits_ = true;
  whole_.hold_writes(HeldFor::shutdown);
  // A replica that has less than all of it cannot go on after a restart.
  replicas_.let_history_rest(true);
  position_ = server_.history.end();
  timer_.expires_after(std::chrono::seconds(most_s));
  wait();
  return Begun::waits;
}

void Shutdown::wait() {
  timer_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled || !waits_) return;
    whole_.handle([this] { finish(); });
  });
}

void Shutdown::replica_moved() {
  // Not within the replica's own request, which may be the caller.
  if (!waits_ || !replicas_.lagging(position_).empty()) return;
  timer_.expires_after(Clock::duration::zero());
  wait();
}

std::int64_t Shutdown::left_ms() const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(timer_.expiry() - Clock::now());
  return waits_ ? std::max<std::int64_t>(left.count(), 0) : 0;
}

// In the words of Redis's log, which people's tools look for.
void Shutdown::report_lag() const {
  const std::vector<Client*> lagging = replicas_.lagging(position_);
  for (const Client* client : lagging) {
    const std::int64_t behind = position_ - client->replica->acknowledged;
    server_.log(LogLevel::warning, "Lagging replica " + client->connection().peer_address() + " lacks " +
                                       std::to_string(behind) + " bytes, which it may never get");
  }
  const std::size_t all = replicas_.all().size();
  if (all == 0) return;
  server_.log(LogLevel::notice, std::to_string(all - lagging.size()) + " of " + std::to_string(all) +
                                    " replicas are in sync when shutting down.");
}

Shutdown::Begun Shutdown::finish() {
  report_lag();
  if (snapshots_.before_end(order_.wish) || order_.force) {
    waits_ = false;
    if (server_.surroundings.stop) server_.surroundings.stop();
    return Begun::stopped;
  }
  server_.log(LogLevel::warning,
              "Errors trying to shut down: the data is not saved; SHUTDOWN NOSAVE stops the server");
  give_up();
  return Begun::failed;
}

bool Shutdown::abort() {
  if (!waits_) return false;
  server_.log(LogLevel::warning, "Shutdown manually aborted");
  give_up();
  return true;
}

void Shutdown::give_up() {
  if (!std::exchange(waits_, false)) return;
  timer_.cancel();
  replicas_.let_history_rest(false);
  whole_.let_writes(HeldFor::shutdown);
  std::vector<Client*> waiting;
  for (const auto& [id, client] : server_.clients) {
    if (client->blocked != nullptr && client->blocked->command->name == "shutdown")
      waiting.push_back(client.get());
  }
  for (Client* client : waiting) {
    blocking_.fail(*client, failed);
    blocking_.release(*client);
    client->will_resume();
  }
}

}  // namespace weir::kv::repl
