#include "kv/replication/replication.hpp"

#include <array>
#include <chrono>

#include "kv/server/server.hpp"

namespace weir::kv::repl {

std::string random_id(Server& server) {
  std::string id;
  while (id.size() < History::id_size) id += "0123456789abcdef"[server.random() % 16];
  return id;
}

Replication::Replication(Server& server)
    : server_(server), history_(random_id(server)), replicas_(server, history_), clock_timer_(server.io) {}

Replication::~Replication() {
  if (history_.kept()) server_.effects.ignore(*this);
}

void Replication::keep_history() {
  if (history_.kept()) return;
  history_.keep();
  server_.effects.listen(*this);
}

void Replication::stop_history() {
  server_.effects.ignore(*this);
  history_.stop(random_id(server_));
  server_.log(LogLevel::notice, "no replica came for repl-backlog-ttl: no history is kept any more");
}

void Replication::effect(int db, std::string_view request) {
  if (db != history_.database) {
    std::string select;
    const std::array<RequestWord, 2> words{"SELECT", std::int64_t{db}};
    append_request(select, words);
    history_.append(select);
    history_.database = db;
  }
  history_.append(request);
}

void Replication::published(int db, Arguments words) {
  if (!history_.kept()) return;
  std::string request;
  append_request(request, words);
  effect(db, request);
}

void Replication::look_at_clock() {
  replicas_.look_at_clock();
  const std::int64_t alone_since_ms = replicas_.alone_since_ms();
  const std::int64_t most_s = server_.settings.repl_backlog_ttl_s;
  if (history_.kept() && alone_since_ms != 0 && most_s != 0 &&
      server_.now_ms - alone_since_ms > most_s * 1000)
    stop_history();
}

void Replication::watch_clock() {
  if (std::exchange(clock_is_watched_, true)) return;
  clock_timer_.expires_after(std::chrono::seconds(1));
  clock_timer_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled) return;
    clock_is_watched_ = false;
    server_.refresh_time();
    look_at_clock();
    if (history_.kept() || replicas_.size() != 0) watch_clock();
    server_.end_round();
  });
}

namespace {

std::string_view stage_name(Replica::Stage stage) {
  switch (stage) {
    case Replica::Stage::announced:
    case Replica::Stage::waits:
      return "wait_bgsave";
    case Replica::Stage::receives:
    case Replica::Stage::loads:
      return "send_bulk";
    case Replica::Stage::online:
      break;
  }
  return "online";
}

// Where a replica listens: what it said, or where it comes from. Without the port of that connection.
std::string address_of(const Client& client) {
  if (!client.replica->address.empty()) return client.replica->address;
  std::string peer = client.connection().peer_address();
  peer.resize(std::min(peer.size(), peer.rfind(':')));
  if (peer.starts_with('[') && peer.ends_with(']')) peer = peer.substr(1, peer.size() - 2);
  return peer;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Replication::facts() const {
  std::vector<std::pair<std::string, std::string>> all;
  const auto say = [&all](std::string name, std::string value) {
    all.emplace_back(std::move(name), std::move(value));
  };
  say("role", "master");
  say("connected_slaves", std::to_string(replicas_.size()));
  std::size_t number = 0;
  for (const Client* client : replicas_.all()) {
    const Replica& replica = *client->replica;
    const bool online = replica.stage == Replica::Stage::online;
    say("slave" + std::to_string(number++),
        "ip=" + address_of(*client) + ",port=" + std::to_string(replica.port) + ",state=" +
            std::string(stage_name(replica.stage)) + ",offset=" + std::to_string(replica.acknowledged) +
            ",lag=" + std::to_string(online ? (server_.now_ms - replica.acknowledged_ms) / 1000 : 0));
  }
  say("master_failover_state", "no-failover");
  say("master_replid", history_.id());
  say("master_replid2",
      history_.previous_id().empty() ? std::string(History::id_size, '0') : history_.previous_id());
  say("master_repl_offset", std::to_string(history_.end()));
  say("second_repl_offset", std::to_string(history_.previous_end() < 0 ? -1 : history_.previous_end() + 1));
  say("repl_backlog_active", history_.kept() ? "1" : "0");
  say("repl_backlog_size", std::to_string(server_.settings.repl_backlog_size));
  say("repl_backlog_first_byte_offset", std::to_string(history_.kept() ? history_.begin() + 1 : 0));
  say("repl_backlog_histlen", std::to_string(history_.end() - history_.begin()));
  return all;
}

void Replication::reply_role(const Call& call) const {
  call.reply.array(3);
  call.reply.bulk("master");
  call.reply.integer(history_.end());
  std::size_t online = 0;
  for (const Client* client : replicas_.all()) online += client->replica->stage == Replica::Stage::online;
  call.reply.array(online);
  for (const Client* client : replicas_.all()) {
    if (client->replica->stage != Replica::Stage::online) continue;
    call.reply.array(3);
    call.reply.bulk(address_of(*client));
    call.reply.bulk(std::to_string(client->replica->port));
    call.reply.bulk(std::to_string(client->replica->acknowledged));
  }
}

}  // namespace weir::kv::repl
