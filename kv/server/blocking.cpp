#include "kv/server/blocking.hpp"

#include <algorithm>

#include "kv/server/server.hpp"

namespace weir::kv {

void Blocking::block(Client& client, BlockedOn on) {
  for (const std::string& key : on.keys) {
    auto& queue = queues_[Key(on.db, key)];
    if (queue.empty() || queue.back() != &client) queue.push_back(&client);
  }
  if (on.deadline_ms != 0) deadlines_.insert({on.deadline_ms, &client});
  client.blocked = std::make_unique<BlockedOn>(std::move(on));
  ++waiting_;
  server_.arm_timer();
}

void Blocking::release(Client& client) {
  if (!client.blocked) return;
  const std::unique_ptr<BlockedOn> on = std::move(client.blocked);
  --waiting_;
  for (const std::string& key : on->keys) {
    const auto it = queues_.find(Key(on->db, key));
    if (it == queues_.end()) continue;
    std::erase(it->second, &client);
    if (it->second.empty()) queues_.erase(it);
  }
  if (on->deadline_ms != 0) deadlines_.erase({on->deadline_ms, &client});
  client.end_of_command();
}

void Blocking::signal(int db, std::string_view key) {
  Key wanted(db, key);
  if (!queues_.contains(wanted)) return;
  if (std::find(ready_.begin(), ready_.end(), wanted) == ready_.end()) ready_.push_back(std::move(wanted));
}

void Blocking::signal_all(Keyspace& db) {
  for (const auto& [key, clients] : queues_) {
    if (key.first == db.index()) signal(key.first, key.second);
  }
}

void Blocking::serve() {
  while (!ready_.empty()) {
    const Key key = std::move(ready_.front());
    ready_.pop_front();
    const auto it = queues_.find(key);
    if (it == queues_.end()) continue;
    const std::deque<Client*> queue = it->second;  // serving changes the queues
    for (Client* client : queue) {
      if (!client->blocked) continue;
      const BlockedOn& on = *client->blocked;
      if (!server_.retry_blocked(*client, on)) continue;
      release(*client);
      server_.will_resume(*client);
    }
  }
}

std::int64_t Blocking::expire(std::int64_t now_ms) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ms) {
    Client& client = *deadlines_.begin()->second;
    client.reply.null_array();
    release(client);
    server_.will_resume(client);
  }
  return next_deadline_ms();
}

}  // namespace weir::kv
