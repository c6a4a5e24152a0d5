#include "kv/clients/blocking.hpp"

#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/core/server_common.hpp"
#include "kv/text/spare_room.hpp"

namespace weir::kv {

namespace {
Type wanted_type(const Command& command) {
  if (command.group == "list") return Type::list;
  return command.group == "stream" ? Type::stream : Type::zset;
}
bool can_be_waited_for(const Record* record) {
  if (record == nullptr) return false;
  const Type type = record->value.type();
  return type == Type::list || type == Type::zset || type == Type::stream;
}
// If its stream is gone there is nothing left to wait for.
bool needs_its_key(const Command& command) { return command.name == "xreadgroup"; }
bool may_be_served(const Command& command, const Record* record) {
  return needs_its_key(command) || (record != nullptr && record->value.type() == wanted_type(command));
}
}  // namespace

void Blocking::block(Client& client, BlockedOn on, std::vector<std::string> keys) {
  for (std::string& key : keys) {
    Queue& queue = queues_[Key(on.db, key)];
    if (!queue.clients.empty() && queue.clients.back() == &client)
      continue;  // the command names the key twice
    queue.clients.push_back(&client);
    queue.need_the_key += needs_its_key(*on.command) ? 1 : 0;
    on.places.push_back({std::move(key), std::prev(queue.clients.end())});
  }
  if (on.deadline_ms != 0) deadlines_.insert({on.deadline_ms, &client});
  client.blocked = std::make_unique<BlockedOn>(std::move(on));
  ++waiting_;
  host_.arm_timer();
}

void Blocking::release(Client& client) {
  if (!client.blocked) return;
  const std::unique_ptr<BlockedOn> on = std::move(client.blocked);
  --waiting_;
  for (BlockedOn::Place& place : on->places) {
    const auto it = queues_.find(Key(on->db, std::move(place.key)));
    it->second.clients.erase(place.in_queue);
    it->second.need_the_key -= needs_its_key(*on->command) ? 1 : 0;
    if (it->second.clients.empty()) queues_.erase(it);
  }
  free_if_empty(queues_);
  if (on->deadline_ms != 0) deadlines_.erase({on->deadline_ms, &client});
  host_.released(client, *on->command);
  client.end_of_command();
}

void Blocking::signal(int db, std::string_view key) {
  const auto it = queues_.find(Key(db, key));
  if (it == queues_.end() || std::exchange(it->second.noted, true)) return;
  ready_.push_back(it->first);
}

void Blocking::signal_all(Keyspace& db) {
  for (const auto& [key, queue] : queues_) {
    if (key.first == db.index()) signal(key.first, key.second);
  }
}

void Blocking::serve() {
  while (!ready_.empty()) {
    const Key key = std::move(ready_.front());
    ready_.pop_front();
    serve(key);
  }
}

void Blocking::serve(const Key& key) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return;
  queue->second.noted = false;
  std::list<Client*>& clients = queue->second.clients;
  Keyspace& db = *server_.databases[static_cast<std::size_t>(key.first)];
  const Record* record = db.peek(key.second, server_.now_ms);
  for (auto at = clients.begin(); at != clients.end();) {
    if (!can_be_waited_for(record) && queue->second.need_the_key == 0) return;
    Client& client = **at++;
    const bool last = at == clients.end();  // the queue is erased with its last client
    if (!may_be_served(*client.blocked->command, record)) continue;
    if (!host_.retry_blocked(client, *client.blocked, key.second)) continue;
    release(client);
    client.will_resume();
    if (last) return;
    record = db.peek(key.second, server_.now_ms);
  }
}

std::int64_t Blocking::expire(std::int64_t now_ms) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ms) {
    give_up(*deadlines_.begin()->second);
  }
  return next_deadline_ms();
}

void Blocking::give_up(Client& client) {
  host_.answer_in_vain(client);
  release(client);
  client.will_resume();
}

void Blocking::fail(Client& client, std::string_view error) {
  ++server_.stats.calls_of(*client.blocked->command).failed;
  client.reply.error(error);
  ++server_.stats.error_replies;
  server_.stats.count_error(client.reply.last_code);
}

}  // namespace weir::kv
