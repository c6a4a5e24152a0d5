// The server's life: clients come and go, a round ends, the timer fires. Execution is in execute.cpp.
#include "kv/server/server.hpp"

#include <algorithm>
#include <chrono>

#include "kv/core/gateway.hpp"
#include "kv/core/kept.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/replication/replication.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/settings/deletion_word.hpp"

namespace weir::kv {

namespace {

// Beyond maxclients a few more clients are accepted to receive the error; the others are closed silently.
constexpr std::size_t refusals_at_once = 128;

constexpr std::string_view protected_mode_error =
    "DENIED this server is in protected mode: it has no password, so it serves clients on its own host only. "
    "From "
    "there set a password (CONFIG SET requirepass) or turn the mode off (CONFIG SET protected-mode no).";

}  // namespace

Server::Server(asio::io_context& context, Settings initial, Surroundings given)
    : ServerParts(
          context, std::move(initial), std::move(given),
          [this](Client& late, const std::string& why) { close_because(late, why); },
          // References to members that are made later; nobody uses them before.
          PartReferences{pubsub_, notifications_, tracking_, access_, monitors_, watches_, slow_work_,
                         blocking_, keys_under_way_, effects_, transports_, dialler_, listeners_}),
      append_only_(aof::make_append_only(*this, surroundings.disk)),
      functions_(std::make_unique<FunctionLibraries>()),
      snapshots_(std::make_unique<Snapshots>(SnapshotSource{*this, effects, *functions_}, *this)),
      scripts_(std::make_unique<Scripts>(
          *this, *this, Scripts::Parts{access, blocking, effects, *functions_, *append_only_})),
      migrations_(migration::make_migrations(*this)),
      transports_(
          context, settings, surroundings.library_path, [this] { end_round(); }, log_line()),
      listeners_(
          settings, transports,
          [this](std::unique_ptr<Connection> connection) { accept(std::move(connection)); }, log_line()),
      timer_(context),
      free_timer_(context) {
  append_only = append_only_.get();
  functions = functions_.get();
  snapshots = snapshots_.get();
  scripts = scripts_.get();
  migrations = migrations_.get();
  replication_ = std::make_unique<repl::Replication>(*this, *this, effects, blocking, *snapshots);
  replication = replication_.get();
  for (std::int64_t i = 0; i < settings.databases; ++i) {
    auto db = std::make_unique<Keyspace>(static_cast<int>(i), use_clock, lazy_free);
    db->on_gone = [this](Keyspace& from, std::string_view key, Keyspace::Gone why) {
      ++(why == Keyspace::Gone::expired ? stats.expired : stats.evicted);
      effects.gone(from, key, why);
      const bool expired = why == Keyspace::Gone::expired;
      notifications.tell(from.index(), expired ? KeyEvent{'x', "expired"} : KeyEvent{'e', "evicted"}, key);
    };
    db->on_fields_gone = [this](Keyspace& from, std::string_view key, std::span<const std::string> fields,
                                Keyspace::Left left) {
      stats.expired_fields += fields.size();
      effects.fields_gone(from, key, fields);
      notifications.tell(from.index(), {'h', "hexpired"}, key);
      if (left == Keyspace::Left::nothing) notifications.tell(from.index(), key_deleted, key);
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
  round.ended.clear();
  gateway.reset();  // it uses other parts
}

void Server::shut_down() {
  replication->shut_down();
  listeners.close_all();
  while (!clients.empty()) clients.begin()->second->close();
  end_round();
  if (gateway != nullptr) gateway->shut_down();
  migrations->shut_down();
  timer_.cancel();
  free_timer_.cancel();
  turns_.cancel();
}

void Server::settings_changed() {
  slow_work.settings_changed();
  effects.deletion_words = {deletion_word(settings.lazyfree_lazy_expire),
                            deletion_word(settings.lazyfree_lazy_eviction)};
  // Marks made under another policy stay. Until their keys are used again they are read as
  // this policy's, as in Redis.
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
  if (client_budget.take_limit(settings)) {
    for (const auto& [id, client] : clients) client->recount();
  }
  snapshots->settings_changed();
  eviction_.settings_changed();
}

bool Server::protects_from(const Connection& connection) const {
  return settings.protected_mode && access.users().default_user().needs_no_password() && !connection.local();
}

void Server::accept(std::unique_ptr<Connection> connection) {
  const auto limit = static_cast<std::size_t>(settings.maxclients);
  const bool full = clients.size() >= limit && !strangers.make_seat();
  if (full && clients.size() >= limit + refusals_at_once) {
    ++stats.rejected;
    return connection->close();
  }
  refresh_time();
  const std::uint64_t id = next_client_id_++;
  OwnedClient owned(new Client(*this, *this, id, std::move(connection)));
  Client& client = *owned;
  client.created_ms = client.active_ms = steady_ms;
  access.reset(client);
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
    client.owe_request();
  }
  client.connection().start(client);
  if (!client.output.empty()) client.will_flush();
  if (!client.connection().established()) handshakes_.begin(id, steady_ms);
  strangers.make_room(steady_ms);
  arm_timer();
}

void Server::close_because(Client& client, const std::string& why) {
  log(LogLevel::verbose, "closing client " + std::to_string(client.id()) + " (" +
                             client.connection().peer_address() + "): " + why);
  client.close();
}

bool Server::make_room() {
  // The primary decides what a replica evicts. While clients are paused, the data is frozen and nothing adds
  // to it. While a snapshot loads, the effects that change it are still to be read.
  if (!replication->follows() && !pause_.any() && !loading) return eviction_.make_room();
  eviction_.pause();
  return true;
}

UncountedMemory Server::uncounted_memory() const {
  const aof::LogMemory log = aof::memory(*append_only);
  return {snapshots->memory(), log.rewrite, log.effects, replication->replicas().memory()};
}

void Server::pause(std::int64_t until_ms, Paused what) {
  if (pause_.begin(until_ms, what, steady_ms)) pause_changed();
}

void Server::end_pause() {
  pause_.end();
  pause_changed();
}

void Server::hold_writes(HeldFor what) {
  pause_.hold_writes(what);
  pause_changed();
}

void Server::let_writes(HeldFor what) {
  pause_.let_writes(what);
  pause_changed();
}

void Server::pause_changed() {
  using Keep = Keyspace::Keep;
  const Keep keep = pause_.any() ? Keep::all : replication->follows() ? Keep::primarys : Keep::nothing;
  for (const auto& db : databases) db->keep_expired(keep);
  for (const auto& [id, client] : clients) client->will_resume();  // those still held back wait on
  migrations->look_at_clock();
  arm_timer();
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
  round.ended.push_back(std::move(it->second));
  clients.erase(it);
}

std::string_view Server::write_refusal() const { return replication->write_refusal(); }

std::string_view Server::snapshot_refusal() const {
  return snapshots->refuses_writes() ? Snapshots::writes_refused : std::string_view();
}

void Server::restore_history(const repl::PlaceInHistory& place) { replication->restore_history(place); }

void Server::replica_drained(Client& client) { replication->replicas().drained(client); }

void Server::end_round() {
  tracking.end_round();
  replication->end_round();
  keep_effects();
  if (gateway != nullptr) gateway->end_round();
  // Resuming a client may serve others, and flushing may resume some, so repeat until both lists are empty.
  while (!round.resumed.empty() || !round.dirty.empty()) {
    const std::vector<std::uint64_t> resumed = std::exchange(round.resumed, {});
    const std::uint64_t began = cycles_now();
    for (const std::uint64_t id : resumed) {
      const auto it = clients.find(id);
      if (it == clients.end()) continue;
      const bool others_wait = cycles_now() - began > ClientTurns::length;  // many were resumed at once
      others_wait ? it->second->resume_later() : it->second->resume();
    }
    tracking.end_round();
    replication->end_round();
    keep_effects();
    for (std::size_t i = 0; i < round.dirty.size(); ++i) {  // flushing may add to the list
      Client& client = *round.dirty[i];
      client.dirty = false;
      if (client.closing) continue;
      const std::size_t before = client.output.size();
      client.connection().flush();
      const std::size_t sent = before - std::min(before, client.output.size());
      stats.bytes_out += sent;
      client.traffic.bytes_out += sent;
      if (client.closing) continue;
      output_limits_.limit_unread(client);
      client.charge();
    }
    round.dirty.clear();
    if (gateway != nullptr) gateway->end_round();
  }
  keep_effects();
  if (client_budget.exceeded()) output_limits_.close_largest();
  std::erase_if(round.ended, [this](const OwnedClient& client) {
    return client->connection().finished() && !scripts->holds(*client);
  });
  free_in_turns();
}

void Server::go_on(std::uint64_t client) {
  handle([&] {
    if (const auto it = clients.find(client); it != clients.end()) it->second->take_turn();
  });
}

void Server::keep_effects() {
  if (aof::keep(*append_only)) return;
  std::vector<Client*> answered;
  for (const auto& [id, client] : clients) {
    // Replicas are sent what is in memory, and the log will be rewritten from that.
    if (!client->output.empty() && !client->is_replica()) answered.push_back(client.get());
  }
  for (Client* client : answered) client->close();
}

// When to look for keys that have expired; 0: none can.
std::int64_t Server::next_expiry_look_ms() const {
  std::int64_t first_ms = Record::never;
  for (const auto& db : databases) {
    if (const std::int64_t next = db->next_expiry_ms(); next != Record::never)
      first_ms = first_ms == Record::never ? next : std::min(first_ms, next);
  }
  if (first_ms == Record::never) return 0;
  // A little late, so that many expire at once. And in a second at the latest, although that may be too
  // early: when the clock of the system is set, keys expire sooner or later than this wait tells.
  constexpr std::int64_t longest_ms = 1000;
  const std::int64_t shortest_ms = expiry_is_behind_ ? 1 : 100;
  return steady_ms +
         (first_ms >= now_ms + longest_ms ? longest_ms : std::max(first_ms - now_ms, shortest_ms));
}

// The timer runs only while something can become due, and no more often than ten times a second.
void Server::arm_timer() {
  std::int64_t due = 0;
  auto sooner = [&due](std::int64_t at) {
    if (at > 0 && (due == 0 || at < due)) due = at;
  };
  if (expires_in_time) sooner(next_expiry_look_ms());
  if (blocking.any()) sooner(blocking.next_deadline_ms());
  if (settings.timeout_s > 0 && !clients.empty()) sooner(steady_ms + 1000);
  sooner(handshakes_.next_deadline_ms());
  sooner(strangers.next_deadline_ms());
  sooner(output_limits_.next_deadline_ms());
  if (gateway != nullptr) sooner(gateway->next_look_ms());
  sooner(migrations->next_look_ms());
  sooner(pause_.until_ms());
  if (due == 0 || (timer_due_ms_ != 0 && timer_due_ms_ <= due)) return;
  timer_due_ms_ = due;
  // The timer's clock ends earlier than the times until which clients may wait.
  constexpr std::int64_t longest_wait_ms = 24 * 3'600'000;
  timer_.expires_after(
      std::chrono::milliseconds(std::clamp<std::int64_t>(due - steady_ms, 1, longest_wait_ms)));
  timer_.async_wait([this](const std::error_code& cancelled) {
    if (!cancelled) tick();
  });
}

void Server::tick() {
  refresh_time();
  timer_due_ms_ = 0;
  if (!script_suspended && expires_in_time) expire_due();
  blocking.expire(steady_ms);
  if (blocking.ready() && !script_suspended) blocking.serve();
  snapshots->look_at_clock();
  replication->look_at_clock();
  if (gateway != nullptr) gateway->look_at_clock();
  migrations->look_at_clock();
  if (pause_.over(steady_ms)) end_pause();
  if (settings.timeout_s > 0) close_idle();
  handshakes_.close_late(steady_ms);
  strangers.close_late(steady_ms);
  output_limits_.close_slow_readers();
  end_round();
  arm_timer();
}

// Removes a limited number of keys and fields, so that requests get their turn; the rest follows a
// millisecond later.
void Server::expire_due() {
  constexpr std::size_t at_once = 500;
  const std::uint64_t begin = cycles_now();
  std::size_t left = at_once;
  expiry_is_behind_ = false;
  for (const auto& db : databases) {
    const std::size_t before = db->size();
    if (db->expire_due(now_ms, left)) expiry_is_behind_ = true;
    left -= before - db->size();
    if (db->expire_due_fields(now_ms, left)) expiry_is_behind_ = true;
  }
  slow_work.note("expire-cycle", cycles_now() - begin);
}

// Frees lazily deleted values, evicts above maxmemory and forgets keys above tracking-table-max-keys, in turn
// with all other work.
void Server::free_in_turns() {
  constexpr std::size_t at_once = 500;  // some 50 us
  if (!lazy_free.any() && !tracking.too_full() && (!eviction_.under_way() || script_suspended)) return;
  if (std::exchange(frees_in_turns_, true)) return;
  free_timer_.expires_after(std::chrono::milliseconds(0));
  free_timer_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled) return;
    frees_in_turns_ = false;
    lazy_free.free_some(at_once);
    handle([this] {  // whose end comes back here if more is left
      if (eviction_.under_way() && !script_suspended) make_room();
      tracking.forget_some(at_once);
    });
  });
}

void Server::close_idle() {
  std::vector<Client*> idle;
  for (const auto& [id, client] : clients) {
    const bool waits = client->blocked != nullptr || client->subscriptions.any() || client->monitors ||
                       client->is_replica() || (gateway != nullptr && gateway->blocks(*client));
    if (!waits && steady_ms - client->active_ms > settings.timeout_s * 1000) idle.push_back(client.get());
  }
  for (Client* client : idle) {
    log(LogLevel::verbose, "closing idle client " + std::to_string(client->id()));
    client->close();
  }
}

}  // namespace weir::kv
