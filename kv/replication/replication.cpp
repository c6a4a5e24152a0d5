#include "kv/replication/replication.hpp"

#include <array>
#include <chrono>

#include "kv/call/call.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"

namespace weir::kv::repl {

Replication::Replication(ServerCommon& server, ServerWhole& whole, Effects& effects, Blocking& blocking,
                         Snapshots& snapshots)
    : server_(server),
      whole_(whole),
      effects_(effects),
      blocking_(blocking),
      history_(server.history),
      replicas_(server, whole, blocking, snapshots, [this] { keep_history(); }),
      failover_(server, whole, replicas_),
      shutdown_(server, whole, blocking, snapshots, replicas_),
      clock_timer_(server.io) {
  replicas_.on_moved = [this] {
    shutdown_.replica_moved();
    failover_.replica_moved();
  };
}

Replication::~Replication() { listen(false); }

void Replication::listen(bool wanted) {
  if (std::exchange(listens_, wanted) == wanted) return;
  wanted ? effects_.listen(*this) : effects_.ignore(*this);
}

void Replication::keep_history() {
  history_.keep();
  listen(!follows());
}

void Replication::restore_history(const PlaceInHistory& place) {
  history_.adopt(place.id, place.position);
  if (!server_.settings.replicaof.empty()) {
    history_.database = place.database;
    server_.log(LogLevel::notice, "the primary will be asked for what came after the snapshot");
    return;
  }
  history_.rename(server_.random_id());
  keep_history();
  replicas_.alone_from_now();
  watch_clock();
  server_.log(LogLevel::notice, "replicas that have all of the snapshot can go on from here");
}

void Replication::stop_history() {
  listen(false);
  history_.stop(server_.random_id());
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
  if (!listens_) return;
  std::string request;
  append_request(request, words);
  effect(db, request);
}

void Replication::follow(std::unique_ptr<Primary> primary) {
  retire_link();
  replicas_.close_all();
  listen(false);
  for (const auto& db : server_.databases) db->keep_expired(Keyspace::Keep::primarys);
  const PrimaryAddress& address = primary->address();
  server_.log(LogLevel::notice, "following " + address.host + ':' + std::to_string(address.port));
  server_.settings.replicaof = address.host + ' ' + std::to_string(address.port);
  link_ = std::move(primary);
  history_.of_primary = true;
  link_->look_at_clock();  // starts the link
  unblock_all();
  watch_clock();
}

void Replication::stop_following() {
  if (!follows()) return;
  retire_link();
  server_.settings.replicaof.clear();
  replicas_.close_all();  // they connect again and learn the new name
  history_.database = -1;
  if (history_.kept()) {
    history_.rename(server_.random_id());
    listen(true);
  }
  const auto keep = whole_.paused() ? Keyspace::Keep::all : Keyspace::Keep::nothing;
  for (const auto& db : server_.databases) db->keep_expired(keep);
  whole_.arm_timer();
  server_.log(LogLevel::notice, "following nobody any more");
}

void Replication::retire_link() {
  if (link_ == nullptr) return;
  link_->close();
  past_.push_back(std::move(link_));
  history_.of_primary = false;
}

void Replication::shut_down() {
  shutdown_.cancel();
  failover_.cancel();
  if (link_ != nullptr) link_->close();
}

// They wait for what only the primary can give, or for a confirmation of changes that may be undone now.
void Replication::unblock_all() {
  std::vector<Client*> blocked;
  for (const auto& [id, client] : server_.clients) {
    if (client->blocked == nullptr) continue;
    const Command& command = *client->blocked->command;
    if (command.has(flag::write) || command.name == "wait" || command.name == "waitaof")
      blocked.push_back(client.get());
  }
  for (Client* client : blocked) {
    blocking_.fail(*client,
                   "UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
                   "replica?)");
    blocking_.release(*client);
    client->will_resume();
  }
}

std::string_view Replication::write_refusal() const {
  const Settings& settings = server_.settings;
  if (follows())
    return settings.replica_read_only ? "READONLY You can't write against a read only replica." : "";
  if (!wants_replicas_in_touch() || replicas_.count_in_touch() >= settings.min_replicas_to_write) return {};
  return "NOREPLICAS Not enough good replicas to write.";
}

bool Replication::wants_replicas_in_touch() const {
  return server_.settings.min_replicas_to_write != 0 && server_.settings.min_replicas_max_lag_s != 0;
}

bool Replication::refuses_stale_reads() const {
  return follows() && !link_->up() && !server_.settings.replica_serve_stale_data;
}

void Replication::look_at_clock() {
  std::erase_if(past_, [](const auto& link) { return link->finished(); });
  if (link_ != nullptr) link_->look_at_clock();
  replicas_.look_at_clock();
  const std::int64_t alone_since_ms = replicas_.alone_since_ms();
  const std::int64_t most_s = server_.settings.repl_backlog_ttl_s;
  if (history_.kept() && !follows() && alone_since_ms != 0 && most_s != 0 &&
      server_.steady_ms - alone_since_ms > most_s * 1000)
    stop_history();
}

void Replication::watch_clock() {
  if (std::exchange(clock_is_watched_, true)) return;
  clock_timer_.expires_after(std::chrono::seconds(1));
  clock_timer_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled) return;
    clock_is_watched_ = false;
    whole_.handle([this] {
      look_at_clock();
      if (follows() || history_.kept() || replicas_.size() != 0 || !past_.empty()) watch_clock();
    });
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

}  // namespace

std::vector<std::pair<std::string, std::string>> Replication::facts() const {
  std::vector<std::pair<std::string, std::string>> all;
  const auto say = [&all](std::string name, std::string value) {
    all.emplace_back(std::move(name), std::move(value));
  };
  say("role", follows() ? "slave" : "master");
  if (follows()) say_link(all);
  say("connected_slaves", std::to_string(replicas_.size()));
  if (wants_replicas_in_touch()) say("min_slaves_good_slaves", std::to_string(replicas_.count_in_touch()));
  std::size_t number = 0;
  for (const Client* client : replicas_.all()) {
    const Replica& replica = *client->replica;
    const bool online = replica.stage == Replica::Stage::online;
    say("slave" + std::to_string(number++),
        "ip=" + replica_address(*client) + ",port=" + std::to_string(replica.port) + ",state=" +
            std::string(stage_name(replica.stage)) + ",offset=" + std::to_string(replica.acknowledged) +
            ",lag=" + std::to_string(online ? (server_.steady_ms - replica.acknowledged_ms) / 1000 : 0) +
            ",link=" + std::string(client->connection().kind()));
  }
  say("master_failover_state", std::string(failover_.stage_name()));
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

void Replication::say_link(std::vector<std::pair<std::string, std::string>>& all) const {
  const auto say = [&all](std::string name, std::string value) {
    all.emplace_back(std::move(name), std::move(value));
  };
  const auto seconds_since = [this](std::int64_t ms) {
    return std::to_string((server_.steady_ms - ms) / 1000);
  };
  const bool loads = link_->stage() == Primary::Stage::loads;
  say("master_host", link_->address().host);
  say("master_port", std::to_string(link_->address().port));
  say("master_link_status", link_->up() ? "up" : "down");
  if (!link_->transport().empty()) say("master_link_transport", std::string(link_->transport()));
  say("master_last_io_seconds_ago", link_->up() ? seconds_since(link_->heard_ms()) : "-1");
  say("master_sync_in_progress", loads ? "1" : "0");
  say("slave_read_repl_offset", std::to_string(link_->read_position()));
  say("slave_repl_offset", std::to_string(history_.end()));
  if (loads) {
    say("master_sync_total_bytes", std::to_string(link_->snapshot_bytes()));
    say("master_sync_read_bytes", std::to_string(link_->loaded_bytes()));
    say("master_sync_last_io_seconds_ago", seconds_since(link_->heard_ms()));
  }
  if (!link_->up()) say("master_link_down_since_seconds", seconds_since(link_->down_since_ms()));
  say("slave_priority", std::to_string(server_.settings.replica_priority));
  say("slave_read_only", server_.settings.replica_read_only ? "1" : "0");
  say("replica_announced", server_.settings.replica_announced ? "1" : "0");
}

void Replication::reply_role(const Call& call) const {
  if (follows()) {
    constexpr std::array<std::string_view, 5> stages{"connect", "connecting", "handshake", "sync",
                                                     "connected"};
    call.reply.array(5);
    call.reply.bulk("slave");
    call.reply.bulk(link_->address().host);
    call.reply.integer(link_->address().port);
    call.reply.bulk(stages[static_cast<std::size_t>(link_->stage())]);
    return call.reply.integer(link_->up() ? history_.end() : -1);
  }
  call.reply.array(3);
  call.reply.bulk("master");
  call.reply.integer(history_.end());
  std::size_t online = 0;
  for (const Client* client : replicas_.all()) online += client->replica->stage == Replica::Stage::online;
  call.reply.array(online);
  for (const Client* client : replicas_.all()) {
    if (client->replica->stage != Replica::Stage::online) continue;
    call.reply.array(3);
    call.reply.bulk(replica_address(*client));
    call.reply.bulk(std::to_string(client->replica->port));
    call.reply.bulk(std::to_string(client->replica->acknowledged));
  }
}

}  // namespace weir::kv::repl
