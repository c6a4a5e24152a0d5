#include "rpc/pool.hpp"

#include <algorithm>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <new>
#include <random>
#include <unordered_set>

#include "rpc/pool/call_lanes.hpp"
#include "rpc/pool/known_servers.hpp"

namespace weir::rpc {

namespace {

using asio::use_awaitable;

// A timer that others can find while it is awaited.
class Listed {
 public:
  Listed(std::unordered_set<asio::steady_timer*>& list, asio::steady_timer& timer)
      : list_(list), timer_(timer) {
    list_.insert(&timer_);
  }
  ~Listed() { list_.erase(&timer_); }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

 private:
  std::unordered_set<asio::steady_timer*>& list_;
  asio::steady_timer& timer_;
};

// Use with `co_await asio::this_coro::cancellation_state`, which does not throw; any other await would.
bool cancelled(const asio::cancellation_state& state) {
  return state.cancelled() != asio::cancellation_type::none;
}

// One attempt to connect to a server, shared by all waiting calls. They continue when it ends.
class Connecting {
 public:
  Connecting(KnownServer& known, const std::unordered_set<asio::steady_timer*>& waiting)
      : known_(known), waiting_(waiting) {
    known_.connecting = true;
  }
  ~Connecting() {
    known_.connecting = false;
    for (asio::steady_timer* one : waiting_) one->cancel();
  }
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

 private:
  KnownServer& known_;
  const std::unordered_set<asio::steady_timer*>& waiting_;
};

// An exception, from the token provider for example, must not stop further attempts.
asio::awaitable<Result<Client>> connected_or_why(std::string address, ConnectOptions options) {
  try {
    co_return co_await connect(address, std::move(options));
  } catch (const std::exception& thrown) {
    co_return fail(Errc::unreachable, "cannot connect to " + address + ": " + thrown.what());
  }
}

// Nor must one from the resolver.
asio::awaitable<Result<std::vector<std::string>>> resolved_or_why(Resolver& resolver) {
  try {
    co_return co_await resolver.resolve();
  } catch (const std::exception& thrown) {
    co_return fail(Errc::unreachable, std::string("the servers cannot be looked up: ") + thrown.what());
  }
}
// False: the resolver cannot report changes.
asio::awaitable<bool> resolver_changed(Resolver& resolver) {
  try {
    co_await resolver.changed();
    co_return true;
  } catch (const std::exception&) {
    co_return false;
  }
}

// A call that got no connection was not sent, whatever the reason, so another server may take it.
bool may_go_elsewhere(Errc why) {
  return why != Errc::cancelled && why != Errc::deadline_exceeded && why != Errc::closed;
}

// Shares the memory of `given`; the last holder frees it.
Buffer share(const std::shared_ptr<Buffer>& given) {
  using Owner = std::shared_ptr<Buffer>;
  return {given->span(), [](void* owner, std::byte*, std::size_t) { delete static_cast<Owner*>(owner); },
          new Owner(given)};
}

// Adds words to an error and keeps its details.
std::unexpected<Error> ended(Error why, const std::string& words) {
  why.what += words;
  return std::unexpected(std::move(why));
}

// What the attempts of one call share.
struct PooledCall {
  std::uint64_t method = 0;
  Bytes body;
  const MethodSchema* schema = nullptr;
  std::shared_ptr<Buffer> given;
  Deadline deadline = no_deadline;
};

std::unexpected<Error> pool_closed() { return fail(Errc::closed, "the pool was closed"); }

}  // namespace

class Pool::State : public std::enable_shared_from_this<State> {
 public:
  State(asio::io_context& on, std::unique_ptr<Resolver> from, PoolOptions with)
      : io_(on),
        options_(std::move(with)),
        resolver_(std::move(from)),
        random_(options_.seed),
        budget_(options_.retry),
        tokens_(options_.hedging),
        known_(options_.balancing) {}

  void start() {
    const auto spawn = [this](asio::cancellation_signal& stop, asio::awaitable<void> loop) {
      // Cancellation, which arrives as an exception, ends the loops.
      asio::co_spawn(io_, std::move(loop),
                     asio::bind_cancellation_slot(stop.slot(), [](const std::exception_ptr&) {}));
    };
    spawn(stop_resolving_, keep_resolving(shared_from_this()));
    spawn(stop_checking_, keep_checking(shared_from_this()));
  }

  void close() {
    closed_ = true;
    stop_resolving_.emit(asio::cancellation_type::terminal);
    stop_checking_.emit(asio::cancellation_type::terminal);
    for (const KnownServerPtr& known : known_.all())
      for (const PooledConnection& one : known->connections) one.client->close();
    wake();
  }

  std::vector<PooledServer> servers() const;
  const PoolStats& stats() const { return stats_; }
  static asio::awaitable<Result<std::shared_ptr<Client>>> pick(std::shared_ptr<State> self, std::uint64_t key,
                                                               Clock::time_point deadline,
                                                               KnownServers::Tried& tried);
  static asio::awaitable<Result<std::shared_ptr<Client>>> pick_one(std::shared_ptr<State> self,
                                                                   std::uint64_t key) {
    KnownServers::Tried tried;
    co_return co_await pick(self, key, no_deadline, tried);
  }
  static asio::awaitable<EncodedReply> call(std::shared_ptr<State> self, std::uint64_t method,
                                            CallOptions options, Bytes body, const MethodSchema* schema);

 private:
  using CallPtr = std::shared_ptr<const PooledCall>;
  static asio::awaitable<EncodedReply> send(std::shared_ptr<Client> client, CallPtr call,
                                            CallOptions options);
  static asio::awaitable<EncodedReply> attempts(std::shared_ptr<State> self, CallPtr call, LanePtr lane);
  static asio::awaitable<EncodedReply> hedged(std::shared_ptr<State> self, CallPtr call, CallOptions options,
                                              std::chrono::microseconds after);
  std::chrono::microseconds hedge_after(const CallOptions& options) const;
  bool may_hedge(const Lanes& lanes) const;
  void call_ended(const EncodedReply& reply, Clock::time_point began);
  void judge_outliers();
  static asio::awaitable<void> keep_resolving(std::shared_ptr<State> self);
  static asio::awaitable<void> keep_checking(std::shared_ptr<State> self);
  void begin_check(const KnownServerPtr& known, PooledConnection& one);
  static asio::awaitable<void> check(std::shared_ptr<State> self, KnownServerPtr known,
                                     std::shared_ptr<Client> client, std::shared_ptr<const void> under_way);
  static asio::awaitable<void> connect_to(std::shared_ptr<State> self, KnownServerPtr known);
  void take_connection(const KnownServerPtr& known, Result<Client> client);

  void take_addresses(Result<std::vector<std::string>> addresses);
  void connect_in_background(const KnownServerPtr& known);
  void try_failed_again();
  static asio::awaitable<Result<KnownServerPtr>> connected_one(std::shared_ptr<State> self,
                                                               KnownServerPtr known, std::uint64_t key,
                                                               Deadline deadline,
                                                               const KnownServers::Tried& tried);
  void failed(KnownServer& known, Error why);
  static asio::awaitable<Result<void>> wait_for_change(std::shared_ptr<State> self,
                                                       Clock::time_point deadline, std::string what);
  void wake() {
    for (asio::steady_timer* one : waiting_) one->cancel();
  }

  asio::io_context& io_;
  const PoolOptions options_;
  const std::unique_ptr<Resolver> resolver_;
  std::mt19937_64 random_;
  RetryBudget budget_;
  HedgingTokens tokens_;
  KnownServers known_;
  PoolStats stats_;
  Clock::time_point judge_at_{};  // outliers, with the first call after it
  bool resolved_ = false;
  Error resolve_error_;
  bool closed_ = false;
  std::unordered_set<asio::steady_timer*> waiting_;  // for addresses or a connection, up to their deadlines
  asio::cancellation_signal stop_resolving_;
  asio::cancellation_signal stop_checking_;
};

void Pool::State::take_addresses(Result<std::vector<std::string>> addresses) {
  resolved_ = true;
  if (!addresses) {
    resolve_error_ = std::move(addresses.error());
  } else {
    known_.list(*addresses);
    resolve_error_ = {Errc::unreachable, "the resolver knows no server of this service"};
  }
  wake();
}

asio::awaitable<void> Pool::State::keep_resolving(std::shared_ptr<State> self) {
  asio::steady_timer pause(self->io_);
  while (!self->closed_) {
    bool told = false;
    try {
      self->take_addresses(co_await resolved_or_why(*self->resolver_));
      told = self->closed_ || co_await resolver_changed(*self->resolver_);
    } catch (const std::bad_alloc&) {  // as if the resolver had thrown it
    }
    if (told) continue;
    pause.expires_after(self->options_.resolve_pause);
    co_await pause.async_wait(use_awaitable);
  }
}

asio::awaitable<Result<void>> Pool::State::wait_for_change(std::shared_ptr<State> self,
                                                           Clock::time_point deadline, std::string what) {
  asio::steady_timer timer(self->io_, deadline);
  const Listed listed(self->waiting_, timer);
  std::error_code woken;
  co_await timer.async_wait(asio::redirect_error(use_awaitable, woken));
  if (cancelled(co_await asio::this_coro::cancellation_state))
    co_return fail(Errc::cancelled, "cancelled while " + what);
  if (!woken) co_return fail(Errc::deadline_exceeded, "the deadline passed while " + what);
  co_return Result<void>();
}

void Pool::State::failed(KnownServer& known, Error why) {
  ++known.failures;
  known.last_error = std::move(why);
  const int attempt = static_cast<int>(std::min<std::uint32_t>(known.failures, 100)) + 1;
  known.down_until = Clock::now() + wait_before(attempt, options_.retry, random_());
}

// Closes idle connections, pings the others, and drops servers that the resolver no longer lists.
asio::awaitable<void> Pool::State::keep_checking(std::shared_ptr<State> self) {
  asio::steady_timer timer(self->io_);
  while (!self->closed_) {
    timer.expires_after(self->options_.check_every);
    co_await timer.async_wait(use_awaitable);
    const auto unused_since = Clock::now() - self->options_.idle_timeout;
    for (const KnownServerPtr& known : self->known_.all()) {
      known->forget_ended();
      for (PooledConnection& one : known->connections) {
        const bool idle = one.client->in_flight() == 0 && known->awaited == 0 &&
                          (one.used <= unused_since || !known->listed);
        if (idle)
          one.client->close();
        else if (one.ping.expired())
          self->begin_check(known, one);
      }
      known->forget_ended();
    }
    self->known_.forget_unlisted();
  }
}

// If there is no memory to begin, the next round begins it.
void Pool::State::begin_check(const KnownServerPtr& known, PooledConnection& one) {
  try {
    const auto under_way = std::make_shared<const char>();
    one.ping = under_way;
    asio::co_spawn(io_, check(shared_from_this(), known, one.client, under_way),
                   [](const std::exception_ptr&) {});
  } catch (const std::bad_alloc&) {
  }
}

// The coroutine destroys `under_way`, however it ends.
asio::awaitable<void> Pool::State::check(std::shared_ptr<State> self, KnownServerPtr known,
                                         std::shared_ptr<Client> client, std::shared_ptr<const void>) {
  const auto timeout = self->options_.check_timeout;
  const Result<void> answered = co_await client->ping_while_alive(timeout);
  if (answered) {
    known->answered();
    self->wake();
  } else if (self->closed_) {
    co_return;
  } else if (answered.error().code == Errc::deadline_exceeded) {
    const Error why{Errc::connection_lost, known->address + " did not answer a ping in " +
                                               std::to_string(timeout.count()) +
                                               " ms: its connection was closed"};
    self->failed(*known, why);
    client->close(why);
  } else if (!known->well()) {
    self->failed(*known, answered.error());
  }
}

// Connects once for all waiting calls.
asio::awaitable<void> Pool::State::connect_to(std::shared_ptr<State> self, KnownServerPtr known) {
  const Connecting connecting(*known, self->waiting_);
  try {
    ConnectOptions options = self->options_.connect;
    options.hello_timeout = std::min(options.hello_timeout, self->options_.check_timeout);
    Result<Client> client = co_await connected_or_why(known->address, options);
    self->take_connection(known, std::move(client));
  } catch (const std::bad_alloc&) {
    self->failed(*known, {Errc::unreachable, "no memory"});  // this needs no memory
  }
}

// A server that failed before must also answer a ping.
void Pool::State::take_connection(const KnownServerPtr& known, Result<Client> client) {
  if (!client) return failed(*known, std::move(client.error()));
  if (closed_) return;
  if (!client->is_open()) return failed(*known, client->end_cause());
  known->connections.push_back({std::make_shared<Client>(std::move(*client)), Clock::now()});
  if (!known->well()) begin_check(known, known->connections.back());
}

// Spawned, so that it continues for others if the call that began it is cancelled.
void Pool::State::connect_in_background(const KnownServerPtr& known) {
  if (!known->connecting)
    asio::co_spawn(io_, connect_to(shared_from_this(), known), [](const std::exception_ptr&) {});
}

// As long as there is another server, no call waits for this one or goes there before it has answered.
void Pool::State::try_failed_again() {
  for (const KnownServerPtr& one : known_.to_try_again(Clock::now())) connect_in_background(one);
}

// Returns `known`, or another server that is connected sooner.
asio::awaitable<Result<KnownServerPtr>> Pool::State::connected_one(std::shared_ptr<State> self,
                                                                   KnownServerPtr known, std::uint64_t key,
                                                                   Deadline deadline,
                                                                   const KnownServers::Tried& tried) {
  const AwaitingConnection awaiting(known);
  while (known->connecting && !self->closed_) {
    if (KnownServerPtr other = self->known_.choose_connected(key, tried)) co_return other;
    const Result<void> woken = co_await wait_for_change(self, deadline, known->address + " was connected to");
    if (!woken) co_return std::unexpected(woken.error());
  }
  co_return known;
}

asio::awaitable<Result<std::shared_ptr<Client>>> Pool::State::pick(std::shared_ptr<State> self,
                                                                   std::uint64_t key,
                                                                   Clock::time_point deadline,
                                                                   KnownServers::Tried& tried) {
  while (!self->resolved_ && !self->closed_) {
    const Result<void> woken = co_await wait_for_change(self, deadline, "the servers were looked up");
    if (!woken) co_return std::unexpected(woken.error());
  }
  if (self->closed_) co_return pool_closed();
  self->judge_outliers();
  self->try_failed_again();
  KnownServerPtr known = self->known_.choose(key, tried, Clock::now());
  if (!known) co_return std::unexpected(self->resolve_error_);
  known->forget_ended();
  const PoolOptions& options = self->options_;
  PooledConnection* best = known->best();
  const bool one_more = best != nullptr && best->client->in_flight() >= options.calls_per_connection &&
                        known->connections.size() < options.connections_per_server;
  if (one_more || best == nullptr) self->connect_in_background(known);
  if (best == nullptr) {
    const Result<KnownServerPtr> connected = co_await connected_one(self, known, key, deadline, tried);
    if (!connected) co_return std::unexpected(connected.error());
    if (self->closed_) co_return pool_closed();
    known = *connected;
  }
  tried.push_back(known);
  best = known->best();  // the new connection moved the others
  if (best == nullptr && known->well())
    co_return fail(Errc::connection_lost, "the connection to " + known->address + " ended at once");
  if (best == nullptr) co_return std::unexpected(known->last_error);
  ++known->calls;
  best->used = Clock::now();
  co_return best->client;
}

// Sends twice if the server refused a token that the connection has replaced meanwhile. Each connection has
// its own tokens, so another connection would not help.
asio::awaitable<EncodedReply> Pool::State::send(std::shared_ptr<Client> client, CallPtr call,
                                                CallOptions options) {
  for (bool again = false;; again = true) {
    if (call->deadline != no_deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::microseconds>(call->deadline - Clock::now());
      options.timeout = std::max(left, std::chrono::microseconds(1));
    }
    Buffer attachment;
    if (call->given) {
      attachment = share(call->given);
      options.attachment_given = &attachment;
    }
    const std::uint32_t tokens = client->tokens_sent();
    EncodedReply reply =
        co_await client->call_encoded(call->method, options, call->body.span(), call->schema);
    const bool refused = !reply && reply.error().code == Errc::unauthenticated;
    if (!refused || again || client->tokens_sent() == tokens) co_return reply;
  }
}

asio::awaitable<EncodedReply> Pool::State::attempts(std::shared_ptr<State> self, CallPtr call, LanePtr lane) {
  KnownServers::Tried& tried = lane->tried;
  for (int attempt = 1;; ++attempt) {
    Error why;
    auto client = co_await pick(self, lane->options.key, call->deadline, tried);
    if (client) {
      const KnownServerPtr at = tried.back();
      EncodedReply reply = co_await send(*client, call, lane->options);
      at->call_ended(reply ? nullptr : &reply.error());
      if (reply) co_return reply;
      why = std::move(reply.error());
      // A refused certificate: there was no connection (stream_transport.hpp).
      if (why.code == Errc::tls) self->failed(*at, why);
    } else {
      why = std::move(client.error());
    }
    const std::string after = attempt > 1 ? " (attempt " + std::to_string(attempt) + ")" : "";
    const bool unsent = !client || why.code == Errc::tls;
    const bool elsewhere =
        unsent && may_go_elsewhere(why.code) && self->known_.untried_left(tried, Clock::now());
    if (attempt >= self->options_.retry.attempts || self->closed_ ||
        !(elsewhere || worth_retrying(why.code, lane->options.idempotent)))
      co_return ended(std::move(why), after);
    if (!unsent && costs_budget(why.code) && !self->budget_.take()) {
      ++self->stats_.retries_refused;
      co_return ended(std::move(why), after + "; too many calls were made again lately for another attempt");
    }
    ++self->stats_.retries;
    if (self->known_.untried_left(tried, Clock::now())) continue;
    const auto wait = wait_before(attempt + 1, self->options_.retry, self->random_());
    if (call->deadline - Clock::now() <= wait)
      co_return ended(std::move(why), after + "; no time is left for another attempt");
    asio::steady_timer timer(self->io_, wait);
    std::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(use_awaitable, ignored));
    if (cancelled(co_await asio::this_coro::cancellation_state))
      co_return fail(Errc::cancelled, "cancelled between two attempts: " + why.what);
    tried.clear();
  }
}

// 0: the call is made at one server at a time. The caller's memory is his again when the call ends, but the
// connection of a lane that lost may use it a little longer.
std::chrono::microseconds Pool::State::hedge_after(const CallOptions& options) const {
  const bool lent = !options.reply_into.empty() || !options.attachment.empty();
  if (!options.idempotent || lent || options_.hedging.attempts < 2) return {};
  const auto after = options.hedge_after.count() != 0 ? options.hedge_after : options_.hedging.after;
  return std::max(after, std::chrono::microseconds(0));
}

// There is a server that no lane has tried, and no lane waits for a connection, which might be to that
// server.
bool Pool::State::may_hedge(const Lanes& lanes) const {
  return lanes.all_sent() && known_.untried_left(lanes.tried(), Clock::now());
}

asio::awaitable<EncodedReply> Pool::State::hedged(std::shared_ptr<State> self, CallPtr call,
                                                  CallOptions options, std::chrono::microseconds after) {
  Lanes lanes(self->io_, options,
              [self, call](LanePtr lane) { return attempts(self, call, std::move(lane)); });
  lanes.begin();
  auto most = static_cast<std::size_t>(self->options_.hedging.attempts);
  Deadline next = deadline_in(after);
  LanePtr won;
  while (!(won = lanes.winner())) {
    const bool open = lanes.count() < most;
    bool due = open && lanes.one_failed() && self->may_hedge(lanes);
    if (!due) {
      const Clock::time_point until = open ? next : no_deadline;
      const bool in_time = co_await lanes.wait(until);
      if (in_time) next = deadline_in(after);
      due = open && in_time && self->may_hedge(lanes);
    }
    if (cancelled(co_await asio::this_coro::cancellation_state))
      co_return fail(Errc::cancelled, "cancelled while servers were asked");
    if (!due || lanes.winner()) continue;
    if (!self->tokens_.take()) {
      ++self->stats_.hedges_refused;
      most = lanes.count();
      continue;
    }
    ++self->stats_.hedges;
    lanes.begin();
  }
  if (won->thrown) std::rethrow_exception(won->thrown);
  if (lanes.is_hedge(won) && won->reply) ++self->stats_.hedges_won;
  lanes.hand_over(*won);
  co_return std::move(won->reply);
}

asio::awaitable<EncodedReply> Pool::State::call(std::shared_ptr<State> self, std::uint64_t method,
                                                CallOptions options, Bytes body, const MethodSchema* schema) {
  const auto& limits = self->options_.connect.limits;
  const auto timeout = options.timeout.count() != 0 ? options.timeout : limits.timeout;
  const auto began = Clock::now();
  self->budget_.called();
  auto call = std::make_shared<PooledCall>();
  call->method = method;
  call->body = std::move(body);
  call->schema = schema;
  if (options.attachment_given != nullptr)  // shared by every attempt
    call->given = std::make_shared<Buffer>(std::move(*options.attachment_given));
  call->deadline = timeout.count() > 0 ? deadline_in(timeout) : no_deadline;
  const auto after = self->hedge_after(options);
  EncodedReply reply;
  if (after.count() > 0) {
    reply = co_await hedged(self, call, options, after);
  } else {
    auto lane = std::make_shared<Lane>();
    lane->options = options;
    reply = co_await attempts(self, call, lane);
  }
  self->call_ended(reply, began);
  co_return reply;
}

void Pool::State::call_ended(const EncodedReply& reply, Clock::time_point began) {
  ++stats_.calls;
  stats_.failures += reply ? 0 : 1;
  stats_.latency.add(Clock::now() - began);
  if (reply)
    tokens_.ended_well();
  else if (counts_against_server(reply.error().code))
    tokens_.failed();
}

void Pool::State::judge_outliers() {
  if (!options_.outliers) return;
  const auto now = Clock::now();
  if (now < judge_at_) return;
  // Before the first interval has passed there is nothing to judge, and nobody is ejected.
  stats_.ejections += known_.judge_outliers(*options_.outliers, now);
  judge_at_ = now + options_.outliers->interval;
}

std::vector<PooledServer> Pool::State::servers() const {
  std::vector<PooledServer> all;
  for (const KnownServerPtr& known : known_.all())
    if (known->listed) all.push_back(known->report());
  return all;
}

Pool::Pool(asio::io_context& io, std::unique_ptr<Resolver> resolver, PoolOptions options)
    : state_(std::make_shared<State>(io, std::move(resolver), std::move(options))) {
  state_->start();
}
Pool::~Pool() { state_->close(); }

asio::awaitable<Result<std::vector<std::byte>>> Pool::call_encoded(std::uint64_t method,
                                                                   const CallOptions& options, Bytes body,
                                                                   const MethodSchema* schema) {
  return State::call(state_, method, options, std::move(body), schema);
}

asio::awaitable<Result<std::shared_ptr<Client>>> Pool::pick(std::uint64_t key) {
  return State::pick_one(state_, key);
}

std::vector<PooledServer> Pool::servers() const { return state_->servers(); }
PoolStats Pool::stats() const { return state_->stats(); }

}  // namespace weir::rpc
