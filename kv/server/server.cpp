// The server's life: clients coming and going, the end of a round, the timer. Execution is in execute.cpp,
// listeners are in listen.cpp.
#include "kv/server/server.hpp"

#include <algorithm>
#include <chrono>

#include "kv/aof/kept.hpp"
#include "kv/gateway/gateway.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/replication/replication.hpp"
#include "kv/scripts/scripts.hpp"

namespace weir::kv {

namespace {

// Beyond maxclients a few more are let in just to be told; past that they are closed without a word.
constexpr std::size_t told_at_once = 128;

constexpr std::string_view protected_mode_error =
    "DENIED this server is in protected mode: it has no password, so it serves clients on its own host only. "
    "From "
    "there set a password (CONFIG SET requirepass) or turn the mode off (CONFIG SET protected-mode no).";

}  // namespace

Server::Server(asio::io_context& context, Settings initial, Surroundings given)
    : io(context),
      settings(std::move(initial)),
      surroundings(std::move(given)),
      append_only(aof::make_append_only(*this, surroundings.disk)),
      scripts(std::make_unique<Scripts>(*this)),
      snapshots(std::make_unique<Snapshots>(*this)),
      random_(surroundings.seed),
      idle_spin_(context, std::chrono::microseconds(settings.idle_spin_us), [this] { return rdma_polls(); }),
      poller_(context, [this] { end_socket_round(); }),
      timer_(context),
      free_timer_(context) {
  started_ms = surroundings.clock_us() / 1000;
  use_clock.chance = [this] { return std::generate_canonical<double, 32>(random_); };
  refresh_time();
  run_id = repl::random_id(*this);
  replication = std::make_unique<repl::Replication>(*this);
  for (std::int64_t i = 0; i < settings.databases; ++i) {
    auto db = std::make_unique<Keyspace>(static_cast<int>(i), use_clock, lazy_free);
    db->on_gone = [this](Keyspace& from, std::string_view key, Keyspace::Gone why) {
      ++(why == Keyspace::Gone::expired ? stats.expired : stats.evicted);
      effects.gone(from, key, why);
      const bool expired = why == Keyspace::Gone::expired;
      notifications.tell(from.index(), expired ? KeyEvent{'x', "expired"} : KeyEvent{'e', "evicted"}, key);
    };
    databases.push_back(std::move(db));
  }
  settings_changed();
}

Server::~Server() {
  scripts->stop();
  snapshots->abandon();
  shut_down();
  aof::turn_off(*append_only);
  ended_.clear();
}

void Server::shut_down() {
  replication->shut_down();
  entrances_.clear();
  while (!clients.empty()) clients.begin()->second->close();
  end_round();
  if (gateway != nullptr) gateway->shut_down();
  timer_.cancel();
  free_timer_.cancel();
}

void Server::end_socket_round() {
  end_round();
  idle_spin_.worked();
}

void Server::move_use_clock() {
  constexpr std::int64_t minute_ms = 60'000;
  // Keys that were restored may have been idle for longer than the server runs: for three years.
  constexpr std::int64_t tick_at_start = 1 << 30;
  last_tick_ = now_ms / use_tick_ms;
  use_clock.tick = static_cast<std::uint32_t>(tick_at_start + last_tick_ - started_ms / use_tick_ms);
  use_clock.minute = static_cast<std::uint32_t>((now_ms - started_ms) / minute_ms);
  command_rate.sample(now_ms, stats.commands);
  input_rate.sample(now_ms, stats.bytes_in);
  output_rate.sample(now_ms, stats.bytes_out);
  peak_memory_ = peak_memory();
}

void Server::settings_changed() {
  slow_cycles_ = 0;
  // Marks made under another policy stay and are read as this one's until their keys are used again, as in
  // Redis.
  const bool frequency = counts_frequency(static_cast<EvictionPolicy>(settings.maxmemory_policy));
  use_clock.notes = frequency ? UseClock::Notes::frequency : UseClock::Notes::time;
  use_clock.rules = {static_cast<std::uint32_t>(settings.lfu_log_factor),
                     static_cast<std::uint32_t>(settings.lfu_decay_time_min)};
  notifications.choose(*EventClasses::parse(settings.notify_keyspace_events));
  for (const auto& db : databases) {
    db->on_added = {};
    if (!notifications.wants('n')) continue;
    db->on_added = [this](Keyspace& to, std::string_view key) {
      notifications.tell(to.index(), {'n', "new"}, key);
    };
  }
  snapshots->settings_changed();
  // A lower maxmemory takes effect although nobody may ask for anything.
  room_is_being_made_ = settings.maxmemory > 0;
}

void Server::log(LogLevel level, std::string_view text) const {
  if (static_cast<int>(level) >= settings.loglevel) surroundings.log(level, text);
}

bool Server::protects_from(const Connection& connection) const {
  return settings.protected_mode && access.users().default_user().needs_no_password() && !connection.local();
}

void Server::accept(std::unique_ptr<Connection> connection) {
  const auto limit = static_cast<std::size_t>(settings.maxclients);
  if (clients.size() >= limit + told_at_once) {
    ++stats.rejected;
    return connection->close();
  }
  refresh_time();
  const std::uint64_t id = next_client_id_++;
  auto owned = std::make_unique<Client>(*this, id, std::move(connection));
  Client& client = *owned;
  client.created_ms = client.active_ms = now_ms;
  access.reset(client);
  const bool full = clients.size() >= limit;
  clients.emplace(id, std::move(owned));
  if (full) {
    ++stats.rejected;
    client.reply.error("ERR max number of clients reached");
    client.close_after_reply = true;
  } else if (protects_from(client.connection())) {
    ++stats.rejected;
    client.reply.error(protected_mode_error);
    client.close_after_reply = true;
  } else {
    ++stats.connections;
  }
  client.connection().start(client);
  if (!client.output.empty()) will_flush(client);
  if (!client.connection().established())
    (handshakes_->crowded() && client.connection().kind().ends_with("tls") ? hurried_ : handshaking_)
        .push_back(id);
  make_room_among_strangers();
  arm_timer();
}

void Server::reset_stats() {
  stats = {};
  counted_ = nullptr;
}

void Server::forget(Client& client) {
  client.let_in();
  scripts->client_ended(client);
  blocking.release(client);
  watches.unwatch(client);
  pubsub.unsubscribe_all(client);
  monitors.remove(client);
  tracking.disable(client);
  replication->replicas().leave(client);
  if (gateway != nullptr) gateway->forget(client);
  const auto it = clients.find(client.id());
  if (it == clients.end()) return;
  ended_.push_back(std::move(it->second));
  clients.erase(it);
}

void Server::will_resume(Client& client) {
  resumed_.push_back(client.id());
  will_flush(client);
}

void Server::end_round() {
  tracking.end_round();
  replication->end_round();
  keep_effects();
  if (gateway != nullptr) gateway->end_round();
  // Resuming a client may serve others, and flushing may resume; each pass takes what the one before left.
  while (!resumed_.empty() || !dirty_.empty()) {
    const std::vector<std::uint64_t> resumed = std::exchange(resumed_, {});
    for (const std::uint64_t id : resumed) {
      if (const auto it = clients.find(id); it != clients.end()) it->second->resume();
    }
    tracking.end_round();
    replication->end_round();
    keep_effects();
    for (std::size_t i = 0; i < dirty_.size(); ++i) {  // flushing may add to the list
      Client& client = *dirty_[i];
      client.dirty = false;
      if (client.closing) continue;
      const std::size_t before = client.output.size();
      client.connection().flush();
      stats.bytes_out += before - std::min(before, client.output.size());
      if (client.closing) continue;
      limit_unread_output(client);
      client.charge();
    }
    dirty_.clear();
    if (gateway != nullptr) gateway->end_round();
  }
  keep_effects();
  std::erase_if(ended_, [this](const std::unique_ptr<Client>& client) {
    return client->connection().finished() && !scripts->holds(*client);
  });
  free_in_turns();
}

void Server::keep_effects() {
  if (aof::keep(*append_only)) return;
  std::vector<Client*> answered;
  for (const auto& [id, client] : clients) {
    // Replicas are sent what is in memory, from which the log will be written anew.
    if (!client->output.empty() && !client->is_replica()) answered.push_back(client.get());
  }
  for (Client* client : answered) client->close();
}

// The timer runs only while something can become due, and no more often than ten times a second.
void Server::arm_timer() {
  std::int64_t due = 0;
  auto sooner = [&due](std::int64_t at) {
    if (at > 0 && (due == 0 || at < due)) due = at;
  };
  for (const auto& db : databases) {
    if (!expires_in_time) break;
    if (const std::int64_t next = db->next_expiry_ms(); next != Record::never) sooner(next);
  }
  // A little late, so that many go at once.
  if (due != 0) due = std::max<std::int64_t>(due, now_ms + (expiry_is_behind_ ? 1 : 100));
  if (blocking.any()) sooner(blocking.next_deadline_ms());
  if (settings.timeout_s > 0 && !clients.empty()) sooner(now_ms + 1000);
  sooner(next_handshake_deadline_ms());
  sooner(next_stranger_deadline_ms());
  sooner(unread_output_due_ms_);
  if (gateway != nullptr) sooner(gateway->next_look_ms());
  if (paused_ != Paused::nothing) sooner(paused_until_ms_);
  if (due == 0 || (timer_due_ms_ != 0 && timer_due_ms_ <= due)) return;
  timer_due_ms_ = due;
  // The clock that timers go by ends earlier than the times at which keys may expire.
  constexpr std::int64_t longest_wait_ms = 24 * 3'600'000;
  timer_.expires_after(std::chrono::milliseconds(std::clamp<std::int64_t>(due - now_ms, 1, longest_wait_ms)));
  timer_.async_wait([this](const std::error_code& cancelled) {
    if (!cancelled) tick();
  });
}

void Server::tick() {
  refresh_time();
  timer_due_ms_ = 0;
  if (!script_suspended && expires_in_time) expire_due();
  blocking.expire(now_ms);
  if (blocking.ready() && !script_suspended) blocking.serve();
  snapshots->look_at_clock();
  replication->look_at_clock();
  if (gateway != nullptr) gateway->look_at_clock();
  if (paused_ != Paused::nothing && now_ms >= paused_until_ms_) end_pause();
  if (settings.timeout_s > 0) close_idle();
  close_unfinished_handshakes();
  close_late_strangers();
  close_slow_readers();
  end_round();
  arm_timer();
}

// So many at a time that requests get their turn, and the rest a millisecond later.
void Server::expire_due() {
  constexpr std::size_t at_once = 500;
  const std::uint64_t begin = cycles_now();
  std::size_t left = at_once;
  expiry_is_behind_ = false;
  for (const auto& db : databases) {
    const std::size_t before = db->size();
    if (db->expire_due(now_ms, left)) expiry_is_behind_ = true;
    left -= before - db->size();
  }
  note_latency("expire-cycle", cycles_now() - begin);
}

// Lazily, and what does not fit maxmemory; in turn with whatever else there is to do.
void Server::free_in_turns() {
  constexpr std::size_t at_once = 500;  // some 50 us
  if (!lazy_free.any() && (!room_is_being_made_ || script_suspended)) return;
  if (std::exchange(frees_in_turns_, true)) return;
  free_timer_.expires_after(std::chrono::milliseconds(0));
  free_timer_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled) return;
    frees_in_turns_ = false;
    lazy_free.free_some(at_once);
    refresh_time();
    if (room_is_being_made_ && !script_suspended) make_room();
    free_in_turns();
  });
}

void Server::close_idle() {
  std::vector<Client*> idle;
  for (const auto& [id, client] : clients) {
    const bool waits =
        client->blocked != nullptr || client->subscriptions.any() || client->monitors || client->is_replica();
    if (!waits && now_ms - client->active_ms > settings.timeout_s * 1000) idle.push_back(client.get());
  }
  for (Client* client : idle) {
    log(LogLevel::verbose, "closing idle client " + std::to_string(client->id()));
    client->close();
  }
}

// nullptr: everybody in `row` is established or gone.
Client* Server::first_not_established(std::deque<std::uint64_t>& row) {
  while (!row.empty()) {
    const auto it = clients.find(row.front());
    if (it != clients.end() && !it->second->connection().established()) return it->second.get();
    row.pop_front();
  }
  return nullptr;
}

// 0: they may take for ever.
std::int64_t Server::handshake_limit_ms(const std::deque<std::uint64_t>& row) const {
  const std::int64_t calm_ms = settings.tls_handshake_timeout_s * 1000;
  if (&row != &hurried_) return calm_ms;
  const std::int64_t hurried_ms = std::chrono::milliseconds(transport::HandshakePlaces::hurried).count();
  return calm_ms == 0 ? hurried_ms : std::min(calm_ms, hurried_ms);
}

// When the next handshake must be over; 0: none is under way, or they may take for ever.
std::int64_t Server::next_handshake_deadline_ms() {
  std::int64_t next = 0;
  for (auto* row : {&handshaking_, &hurried_}) {
    const Client* const first = first_not_established(*row);
    const std::int64_t limit_ms = handshake_limit_ms(*row);
    if (first == nullptr || limit_ms == 0) continue;
    const std::int64_t due = first->created_ms + limit_ms;
    next = next == 0 ? due : std::min(next, due);
  }
  return next;
}

void Server::close_unfinished_handshakes() {
  for (auto* row : {&handshaking_, &hurried_}) {
    const std::int64_t limit_ms = handshake_limit_ms(*row);
    if (limit_ms == 0) continue;
    while (Client* const late = first_not_established(*row)) {
      if (late->created_ms + limit_ms > now_ms) break;
      log(LogLevel::verbose,
          "closing client " + std::to_string(late->id()) + " (" + late->connection().peer_address() +
              "): no " + (late->connection().kind() == "rdma" ? "buffer announced" : "TLS handshake") +
              " for " + std::to_string(limit_ms / 1000) + " s" +
              (row == &hurried_ ? "; many others wait to begin theirs" : ""));
      late->close();
    }
  }
}

// When the stranger that has been here longest must have given the password; 0: there is none, or no limit.
std::int64_t Server::next_stranger_deadline_ms() const {
  const Strangers::Stranger* oldest = strangers.oldest();
  if (oldest == nullptr || settings.auth_timeout_s == 0) return 0;
  return oldest->since_ms + settings.auth_timeout_s * 1000;
}

void Server::close_late_strangers() {
  for (std::int64_t due; (due = next_stranger_deadline_ms()) != 0 && due <= now_ms;) {
    Client& late = *strangers.oldest()->client;
    log(LogLevel::verbose, "closing client " + std::to_string(late.id()) + " (" +
                               late.connection().peer_address() + "): no password for " +
                               std::to_string(settings.auth_timeout_s) + " s");
    late.close();
  }
}

// Clients that hold seats without knowing the password must not keep out those that know it. Many of the
// latter may come at once: each has a second.
void Server::make_room_among_strangers() {
  constexpr std::int64_t undisturbed_ms = 1000;
  const auto most = std::max<std::size_t>(static_cast<std::size_t>(settings.maxclients) / 2, 1);
  while (strangers.size() > most && now_ms - strangers.oldest()->since_ms >= undisturbed_ms) {
    Client& oldest = *strangers.oldest()->client;
    log(LogLevel::verbose,
        "closing client " + std::to_string(oldest.id()) + " (" + oldest.connection().peer_address() +
            "): others without the password came after it, and half of maxclients are such");
    oldest.close();
  }
}

}  // namespace weir::kv
