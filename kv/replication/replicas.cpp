#include "kv/replication/replicas.hpp"

#include <algorithm>
#include <chrono>

#include "kv/clients/blocked_on.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"
#include "kv/persistence/snapshots.hpp"

namespace weir::kv::repl {

namespace {

// How much of the history may wait in a replica's own queue.
constexpr std::size_t filled_up_to = std::size_t{256} << 10;
constexpr std::string_view ping = "*1\r\n$4\r\nPING\r\n";
constexpr std::string_view get_ack = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

}  // namespace

std::string replica_address(const Client& replica) {
  if (!replica.replica->address.empty()) return replica.replica->address;
  std::string peer = replica.connection().peer_address();
  peer.resize(std::min(peer.size(), peer.rfind(':')));
  if (peer.starts_with('[') && peer.ends_with(']')) peer = peer.substr(1, peer.size() - 2);
  return peer;
}

Replicas::Replicas(ServerCommon& server, ServerWhole& whole, Blocking& blocking, Snapshots& snapshots,
                   std::function<void()> keep_history)
    : server_(server),
      whole_(whole),
      blocking_(blocking),
      snapshots_(snapshots),
      history_(server.history),
      keep_history_(std::move(keep_history)),
      turn_timer_(server.io) {}

void Replicas::follow(Client& client, std::string_view id, std::int64_t position) {
  Replica& replica = *client.replica;
  if (all_.empty()) pinged_ms_ = server_.steady_ms;
  all_.push_back(&client);
  alone_since_ms_ = 0;
  replica.heard_ms = replica.acknowledged_ms = server_.steady_ms;
  client.set_replies(Replies::off);  // it is sent nothing but the stream
  if (history_.can_continue(id, position)) return continue_from(client, position);
  if (!id.empty()) ++refused_partial_syncs_;
  replica.stage = Replica::Stage::waits;
  begin_full_sync();
}

void Replicas::continue_from(Client& client, std::int64_t position) {
  ++partial_syncs_;
  client.output.append(client.replica->knows_renaming ? "+CONTINUE " + history_.id() + "\r\n"
                                                      : std::string("+CONTINUE\r\n"));
  client.replica->stage = Replica::Stage::online;
  client.replica->position = position;
  server_.log(LogLevel::notice, "replica " + client.connection().peer_address() + " goes on, " +
                                    std::to_string(history_.end() - position) + " bytes behind");
  fill(client);
  client.will_flush();
}

// All waiting replicas begin together. Not while another walk through the databases is running, nor within a
// script: what the script has done so far would be both in the snapshot and in the history.
void Replicas::begin_full_sync() {
  if (full_sync_ != nullptr || server_.script_suspended || server_.loading) return;
  std::vector<Client*> to;
  std::ranges::copy_if(all_, std::back_inserter(to),
                       [](const Client* client) { return client->replica->stage == Replica::Stage::waits; });
  if (to.empty()) return;
  // Those that must be told the length, or read another form, get a snapshot of their own; the others wait
  // for the next.
  std::erase_if(to, [first = to.front()](const Client* client) {
    return !client->replica->same_form(*first->replica);
  });
  const auto walk = snapshots_.lend_walk(Snapshots::LentTo::replicas, [this] { close_all(); });
  if (!walk) return;  // look_at_clock() tries again
  keep_history_();
  if (!history_.of_primary) history_.database = -1;  // replicas begin with none selected
  for (Client* client : to) {
    Replica& replica = *client->replica;
    ++full_syncs_;
    replica.stage = Replica::Stage::receives;
    replica.position = history_.end();
    if (replica.asked_the_old_way) continue;
    client->output.append("+FULLRESYNC " + history_.id() + ' ' + std::to_string(history_.end()) + "\r\n");
  }
  server_.log(LogLevel::notice,
              "a full synchronisation of " + std::to_string(to.size()) + " replicas begins");
  full_sync_ = std::make_unique<FullSync>(snapshots_.source(), *walk, std::move(to));
  rest(0);
}

void Replicas::rest(std::int64_t us) {
  turn_timer_.expires_after(std::chrono::microseconds(us));
  turn_timer_.async_wait([this](const std::error_code& cancelled) {
    if (!cancelled) take_turn();
  });
}

void Replicas::take_turn() {
  if (full_sync_ == nullptr) return;
  whole_.handle([this] {
    if (const auto us = full_sync_->take_turn()) {
      rest(*us);
    } else {
      full_sync_over();
    }
  });
}

void Replicas::full_sync_over() {
  const std::string failure = full_sync_->failure();
  const std::vector<Client*> receivers = full_sync_->receivers();
  abandon_full_sync();
  if (!failure.empty()) {
    for (Client* client : receivers)
      close(*client, failure + "; a replica that says 'REPLCONF capa eof' needs no file");
    return begin_full_sync();
  }
  for (Client* client : all_) {
    if (client->replica->wants_only_data && client->replica->stage > Replica::Stage::receives)
      client->close_after_reply = true;
  }
  server_.log(LogLevel::notice, "all of the snapshot is on its way to the replicas");
  begin_full_sync();  // for replicas that came meanwhile
}

void Replicas::abandon_full_sync() {
  if (full_sync_ == nullptr) return;
  turn_timer_.cancel();
  full_sync_.reset();
  snapshots_.walk_returned();
}

void Replicas::acknowledged(Client& client, std::int64_t position, std::int64_t synced) {
  Replica& replica = *client.replica;
  if (!replica.follows()) return;
  replica.heard_ms = replica.acknowledged_ms = server_.steady_ms;
  // It cannot have applied more than it was sent.
  if (position > replica.position) return;
  replica.acknowledged = std::max(replica.acknowledged, position);
  replica.synced = std::max(replica.synced, std::min(synced, position));
  if (replica.stage == Replica::Stage::loads) {
    replica.stage = Replica::Stage::online;
    server_.log(LogLevel::notice,
                "replica " + client.connection().peer_address() + " has loaded the snapshot");
    fill(client);
  }
  if (!waiting_.empty()) answer_waiting();
  if (on_moved) on_moved();
}

void Replicas::leave(Client& client) {
  waiting_.erase(client.id());
  if (client.replica == nullptr || !client.replica->follows()) return;
  if (client.replica->stage == Replica::Stage::loads && !client.replica->wants_only_data)
    server_.log(LogLevel::warning, "replica " + client.connection().peer_address() +
                                       " left with a snapshot that it has not confirmed; if it asks for "
                                       "another one, its log says why it cannot read this one");
  std::erase(all_, &client);
  if (all_.empty()) alone_since_ms_ = server_.steady_ms;
  if (full_sync_ != nullptr) {
    full_sync_->leave(client);
    if (full_sync_->for_nobody()) abandon_full_sync();
  }
  if (on_moved) on_moved();
}

void Replicas::let_history_rest(bool rests) {
  if (rests && !history_rests_ && history_.kept() && !history_.of_primary) history_.append(get_ack);
  history_rests_ = rests;
}

void Replicas::alone_from_now() {
  if (all_.empty()) alone_since_ms_ = server_.steady_ms;
}

std::vector<Client*> Replicas::lagging(std::int64_t position) const {
  std::vector<Client*> all;
  std::ranges::copy_if(all_, std::back_inserter(all), [position](const Client* client) {
    const Replica& replica = *client->replica;
    const bool never_confirms = replica.wants_only_data || replica.asked_the_old_way;
    return !never_confirms && replica.acknowledged < position;
  });
  return all;
}

void Replicas::close_all() {
  while (!all_.empty()) close(*all_.back(), "what it has is not what this server has from now on");
}

void Replicas::close(Client& client, std::string_view why) {
  server_.log(LogLevel::warning,
              "closing replica " + client.connection().peer_address() + ": " + std::string(why));
  client.close();
}

void Replicas::fill(Client& client) {
  Replica& replica = *client.replica;
  if (replica.stage != Replica::Stage::online) return;
  while (client.output.size() < filled_up_to && replica.position < history_.end()) {
    const std::string_view some = history_.from(replica.position);
    client.output.append(some);
    replica.given += some.size();
    replica.position += static_cast<std::int64_t>(some.size());
    client.will_flush();
  }
}

void Replicas::drained(Client& client) {
  if (client.replica->follows()) fill(client);
}

void Replicas::pass_on() {
  const bool own = !history_.of_primary;
  if (std::exchange(asks_for_acknowledgement_, false) && own && !all_.empty() && !history_rests_)
    history_.append(get_ack);
  std::int64_t wanted_from = history_.end() - server_.settings.repl_backlog_size;
  for (std::size_t i = 0; i < all_.size();) {
    Client& client = *all_[i];
    fill(client);
    if (limit(client)) continue;  // it is closed, and its place is another's
    if (client.replica->stage != Replica::Stage::waits)
      wanted_from = std::min(wanted_from, client.replica->position);
    ++i;
  }
  history_.forget_before(wanted_from);
}

// What waits in its queue and has to count.
std::size_t Replicas::unsent(const Client& client) const {
  const std::size_t size = client.output.size();
  switch (client.replica->stage) {
    case Replica::Stage::online:
      return size;
    case Replica::Stage::receives:
      return size - std::min(size, full_sync_ == nullptr ? size : full_sync_->most_ahead());
    default:
      return 0;
  }
}

// Closes the replica if more waits for it than it may make the server hold.
bool Replicas::limit(Client& client) {
  Replica& replica = *client.replica;
  const OutputLimit& limit = server_.settings.replica_output;
  std::size_t waits = unsent(client);
  if (replica.stage != Replica::Stage::waits)
    waits += static_cast<std::size_t>(history_.end() - replica.position);
  // The backlog is kept anyway, so it costs nothing.
  const auto beyond = [&](std::int64_t bytes) {
    return bytes > 0 && waits > static_cast<std::size_t>(std::max(bytes, server_.settings.repl_backlog_size));
  };
  if (beyond(limit.hard_bytes))
    return close(client, "more waits for it than client-output-buffer-limit allows"), true;
  if (!beyond(limit.soft_bytes)) {
    replica.over_soft_limit_since_ms = 0;
    return false;
  }
  if (replica.over_soft_limit_since_ms == 0) replica.over_soft_limit_since_ms = server_.steady_ms;
  if (server_.steady_ms - replica.over_soft_limit_since_ms <= limit.soft_s * 1000) return false;
  return close(client, "too much waits for it for too long (client-output-buffer-limit)"), true;
}

void Replicas::look_at(Client& client) {
  Replica& replica = *client.replica;
  const std::uint64_t taken = replica.given - std::min<std::uint64_t>(replica.given, client.output.size());
  // The transport accepts bytes for an online replica even if the replica reads nothing.
  const bool takes = std::exchange(replica.taken, taken) != taken && replica.stage != Replica::Stage::online;
  if (takes) replica.heard_ms = server_.steady_ms;
  const bool has_no_byte = replica.stage == Replica::Stage::waits ||
                           (replica.stage == Replica::Stage::receives && replica.given == 0);
  if (has_no_byte) {
    // The replica is not the late one; a newline tells it that we are alive.
    client.output.append("\n");
    client.will_flush();
    replica.heard_ms = server_.steady_ms;
  }
  // It never says anything; if it is gone, client-output-buffer-limit notices.
  if (replica.asked_the_old_way && replica.stage == Replica::Stage::online) return;
  // A replica that loads sends only newlines.
  if (server_.steady_ms - std::max(replica.heard_ms, client.active_ms) >
      server_.settings.repl_timeout_s * 1000)
    close(client, "nothing was heard of it for repl-timeout");
}

void Replicas::look_at_clock() {
  for (std::size_t i = 0; i < all_.size();) {
    Client* const client = all_[i];
    look_at(*client);
    if (i < all_.size() && all_[i] == client) ++i;
  }
  if (all_.empty()) return;
  begin_full_sync();
  if (server_.steady_ms - pinged_ms_ >= server_.settings.repl_ping_replica_period_s * 1000) {
    pinged_ms_ = server_.steady_ms;
    if (history_.kept() && !history_.of_primary && !history_rests_) history_.append(ping);
  }
}

std::size_t Replicas::memory() const {
  std::size_t bytes = full_sync_ == nullptr ? 0 : full_sync_->memory();
  if (all_.empty()) return bytes;
  for (const Client* client : all_) bytes += client->output.memory();
  return bytes + history_.memory_beyond(server_.settings.repl_backlog_size);
}

std::int64_t Replicas::count_acknowledged(std::int64_t position) const {
  return std::ranges::count_if(all_, [position](const Client* client) {
    return client->replica->stage == Replica::Stage::online && client->replica->acknowledged >= position;
  });
}

std::int64_t Replicas::count_synced(std::int64_t position) const {
  return std::ranges::count_if(all_, [position](const Client* client) {
    return client->replica->stage == Replica::Stage::online && client->replica->synced >= position;
  });
}

std::int64_t Replicas::count_in_touch() const {
  return std::ranges::count_if(all_, [this](const Client* client) {
    const Replica& replica = *client->replica;
    // In whole seconds, as INFO reports the lag.
    return replica.stage == Replica::Stage::online &&
           (server_.steady_ms - replica.acknowledged_ms) / 1000 <= server_.settings.min_replicas_max_lag_s;
  });
}

bool Replicas::enough_confirmed(const Client& client) const {
  const BlockedOn& wait = *client.blocked;
  const bool on_disks = wait.command->name == "waitaof";
  return (on_disks ? count_synced(wait.position) : count_acknowledged(wait.position)) >= wait.replicas;
}

void Replicas::wait_for(const Client& client) {
  waiting_.insert(client.id());
  asks_for_acknowledgement_ = true;
}

void Replicas::answer_waiting() {
  const std::vector<std::uint64_t> waiting(waiting_.begin(), waiting_.end());
  for (const std::uint64_t id : waiting) {
    const auto it = server_.clients.find(id);
    Client* const client = it == server_.clients.end() ? nullptr : it->second.get();
    if (client == nullptr || client->blocked == nullptr || client->blocked->replicas == 0) {
      waiting_.erase(id);
      continue;
    }
    if (!enough_confirmed(*client)) continue;
    waiting_.erase(id);
    blocking_.give_up(*client);
  }
}

}  // namespace weir::kv::repl
