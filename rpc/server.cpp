#include "rpc/server.hpp"

#include <malloc.h>

#include <algorithm>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <optional>
#include <unordered_map>

#include "rpc/http/gateway.hpp"
#include "rpc/server/reflection.hpp"
#include "rpc/server/server_thread.hpp"
#include "rpc/stats_keeper.hpp"
#include "rpc/transport/current_tls.hpp"
#include "rpc/transport/tls_transport.hpp"

namespace weir::rpc {

namespace {

constexpr std::uint32_t most_threads = 256;
constexpr std::size_t most_leaving = 64;  // per thread, to be told why; further ones are closed at once

// Of Transport::peer(): "tcp 2001:db8::1:4711" comes from 2001:db8::1, "unix /run/socket" from this host.
std::string_view address_in(std::string_view peer) {
  const std::size_t space = peer.find(' ');
  if (space == peer.npos || peer.starts_with("unix ")) return peer.substr(0, space);
  return peer.substr(space + 1, peer.rfind(':') - space - 1);
}

// A thread's share of the connections. Only that thread uses it, except for `chain` and `totals`.
struct Lane {
  asio::io_context& io;
  std::shared_ptr<const ServerChain> chain;
  std::shared_ptr<ServerTotals> totals;
  using Connections = std::unordered_map<ServerConnection*, std::shared_ptr<ServerConnection>>;
  Connections connections;
  Connections leaving;  // refused; not counted in `open`
  std::shared_ptr<ThreadTurns> turns;
  // Runs until look() while there are connections; destroyed before its io_context.
  std::optional<asio::steady_timer> watch;
};

}  // namespace

struct Server::State {
  using Lack = transport::Newcomers::Lack;
  using Room = transport::Newcomers::Room;

  State(asio::io_context& on, ServerOptions with)
      : options(std::move(with)), rules(std::make_shared<ServerRules>(options.limits, options.blocking)) {
    rules->authentication = options.authentication;
    rules->compression = options.compression;
    rules->exceptions_to_callers = options.exceptions_to_callers;
    if (options.http) http = http_terms();
    const std::uint32_t count = threads_allowed() ? options.threads : 1;
    if (options.stats) keeper = std::make_shared<StatsKeeper>(count);
    lanes.push_back(make_lane(on, 0));
    for (std::uint32_t i = 1; i < count; ++i) {
      threads.push_back(std::make_unique<ServerThread>("weir-rpc-" + std::to_string(i)));
      lanes.push_back(make_lane(threads.back()->io(), i));
    }
  }

  bool threads_allowed() const { return options.threads >= 1 && options.threads <= most_threads; }

  std::unique_ptr<Lane> make_lane(asio::io_context& io, std::size_t thread) const {
    auto chain = std::make_shared<ServerChain>(options.interceptors);
    if (keeper) chain->insert(chain->begin(), keeper->shard(thread));  // outermost: sees what others refuse
    return std::make_unique<Lane>(Lane{io,
                                       std::move(chain),
                                       std::make_shared<ServerTotals>(),
                                       {},
                                       {},
                                       std::make_shared<ThreadTurns>(io),
                                       std::nullopt});
  }

  std::shared_ptr<const http::Terms> http_terms() const {
    auto made = std::make_shared<http::Terms>();
    made->options = *options.http;
    made->peer = options.limits.peer;
    made->registry = &rules->registry;
    made->sends_credentials = options.authentication.authenticate != nullptr;
    return made;
  }
  // The transport itself where HTTP is not served.
  TransportPtr with_http(asio::io_context& io, const Address& at, TransportPtr transport) const {
    if (!http || at.scheme == Scheme::rdma || at.scheme == Scheme::rdma_tls) return transport;
    return http::make_gateway(io, std::move(transport), {http, rules, rules->memory.get()});
  }

  Result<void> read_certificates() {
    auto made = make_tls_context(options.transport.tls, TlsSide::server);
    if (!made) return std::unexpected(std::move(made.error()));
    if (!tls) tls = std::make_shared<CurrentTls>(*made);
    tls->replace(std::move(*made));
    return {};
  }

  // Runs `work` in the lane's thread; at once if that is this thread.
  template <class Work>
  void in_lane(std::size_t which, Work work) {
    Lane& lane = *lanes[which];
    if (which == 0) return work(lane);
    asio::post(lane.io, [&lane, work] { work(lane); });
  }

  Listener::Threads all_threads() const {
    Listener::Threads all;
    for (const auto& lane : lanes) all.push_back(&lane->io);
    return all;
  }

  // Call in the thread of `io`.
  void take(const std::shared_ptr<State>& self, asio::io_context& io, TransportPtr transport) {
    Lane& lane = **std::ranges::find(lanes, &io, [](const auto& one) { return &one->io; });
    const bool full = open.fetch_add(1) >= options.limits.max_connections &&
                      newcomers->make_room(Lack::place) == Room::none;
    if (full || draining.load()) {
      --open;
      ++refused;
      return turn_away(self, lane, std::move(transport), full);
    }
    ++connections;
    const auto connection = make_connection(self, lane, std::move(transport));
    lane.connections.emplace(connection.get(), connection);
    auto leave = [weak = std::weak_ptr(self), &lane, who = std::weak_ptr(connection)](Lack of) {
      const auto work = [weak, &lane, who, of] {
        const auto state = weak.lock();
        const auto newcomer = who.lock();
        if (state && newcomer) State::give_way(*state, lane, *newcomer, of);
      };
      if (!lane.io.get_executor().running_in_this_thread()) return asio::post(lane.io, work), Room::soon;
      return work(), Room::now;
    };
    connection->is_newcomer(
        newcomers->enter(address_in(std::as_const(*connection).transport().peer()), std::move(leave)));
    connection->start();
    watch(self, lane);
  }

  // For a client that comes when the server is full. It counts as refused in its place.
  static void give_way(State& state, Lane& lane, ServerConnection& newcomer, Lack of) {
    const auto found = lane.connections.find(&newcomer);
    if (found == lane.connections.end()) return;
    const std::shared_ptr<ServerConnection> connection = std::move(found->second);
    lane.connections.erase(found);
    --state.open;
    ++state.refused;
    if (of == Lack::descriptor || lane.leaving.size() >= most_leaving) return connection->stop();
    lane.leaving.emplace(connection.get(), connection);
    connection->dismiss({Errc::overloaded, "the server is full, and this connection had called nothing yet"});
  }

  void turn_away(const std::shared_ptr<State>& self, Lane& lane, TransportPtr transport, bool full) {
    if (lane.leaving.size() >= most_leaving) return transport->close();
    const auto connection = make_connection(self, lane, std::move(transport));
    lane.leaving.emplace(connection.get(), connection);
    connection->turn_away(full ? Error{Errc::overloaded, "the server has as many connections as it takes"}
                               : Error{Errc::draining, "the server takes no new calls: connect to another"});
  }

  // Its end removes it from the lane, whether it was served or refused.
  std::shared_ptr<ServerConnection> make_connection(const std::shared_ptr<State>& self, Lane& lane,
                                                    TransportPtr transport) const {
    auto forget = [weak = std::weak_ptr(self), &lane](ServerConnection& gone) {
      const auto state = weak.lock();
      if (!state || lane.leaving.erase(&gone) > 0) return;
      if (lane.connections.erase(&gone) > 0) --state->open;
      if (lane.connections.empty() && !state->has_memory_to_give_back()) lane.watch.reset();
    };
    return std::make_shared<ServerConnection>(lane.io, std::move(transport), rules, lane.chain, lane.totals,
                                              lane.turns, std::move(forget));
  }

  // Checks from time to time what connections do or have stopped doing.
  void watch(const std::shared_ptr<State>& self, Lane& lane) {
    if (lane.watch) return;
    lane.watch.emplace(lane.io, look_every());
    lane.watch->async_wait([weak = std::weak_ptr(self), &lane](const std::error_code& cancelled) {
      const auto state = weak.lock();
      if (cancelled || !state) return;
      lane.watch.reset();
      const auto all = lane.connections;  // a connection may be given up during the loop
      const auto now = PeerWatch::TimePoint::clock::now();
      for (const auto& [key, connection] : all) connection->look(now);
      state->give_memory_back();
      if (!lane.connections.empty()) state->watch(state, lane);
    });
  }
  std::chrono::steady_clock::duration look_every() const {
    const PeerLimits& peer = options.limits.peer;
    auto shortest = std::min({peer.first_frame, peer.frame, peer.keepalive});
    if (peer.idle.count() > 0) shortest = std::min(shortest, peer.idle);
    return std::clamp(shortest / 8, std::chrono::milliseconds(1), std::chrono::milliseconds(1000));
  }

  // The heap keeps freed memory below blocks that are in use: gigabytes, after a client that
  // did not read its replies.
  bool has_memory_to_give_back() const {
    constexpr std::size_t worth_it = 64 << 20;
    return rules->memory->peak() > 2 * rules->memory->used() + worth_it;
  }
  void give_memory_back() const {
    if (!has_memory_to_give_back()) return;
    rules->memory->forget_peak();
    malloc_trim(0);
  }

  void stop(Lane& lane) {
    lane.watch.reset();
    for (const auto& [key, connection] : std::exchange(lane.leaving, {})) connection->stop();
    const auto all = std::exchange(lane.connections, {});
    for (const auto& [key, connection] : all) connection->stop();
    open -= static_cast<std::uint32_t>(all.size());
  }
  void stop_listening() {
    draining = true;
    listeners.clear();
  }
  // Connected clients are told why; connecting ones are told once they have connected.
  void listen_no_more() {
    draining = true;
    for (const auto& listener : listeners) listener->accept_rest();
  }

  const ServerOptions options;
  const std::shared_ptr<ServerRules> rules;
  std::shared_ptr<const http::Terms> http;  // null: HTTP is not served
  std::shared_ptr<CurrentTls> tls;          // null: at no address yet
  std::shared_ptr<StatsKeeper> keeper;
  std::vector<std::unique_ptr<Lane>> lanes;            // the io_context's lane, then the threads'
  std::vector<std::unique_ptr<ServerThread>> threads;  // destroyed before the lanes
  std::vector<std::unique_ptr<Listener>> listeners;
  // Of all lanes: connections that have called nothing yet, or are not authenticated.
  const std::shared_ptr<transport::Newcomers> newcomers = std::make_shared<transport::Newcomers>();

  // Changed by every thread when a connection begins or ends. `draining` is set before the threads are told
  // to drain or stop their connections, so that none takes a connection after that.
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint32_t> open{0};
  std::atomic<bool> draining{false};
};

Server::Server(asio::io_context& io) : Server(io, ServerOptions()) {}
Server::Server(asio::io_context& io, ServerOptions options)
    : state_(std::make_shared<State>(io, std::move(options))) {
  add_reflection(state_->rules->registry);
  if (state_->keeper) state_->rules->registry.add(state_->keeper->method());
}

Server::~Server() {
  state_->stop_listening();
  state_->stop(*state_->lanes[0]);
  for (std::size_t i = 1; i < state_->lanes.size(); ++i)
    state_->threads[i - 1]->end([this, i] { state_->stop(*state_->lanes[i]); });
  state_->rules->blocking->stop();  // its threads report to the ones that end next
  state_->threads.clear();
}

void Server::add(const Registered& row) { state_->rules->registry.add(row); }
void Server::alias(std::string_view name, std::string_view of) { state_->rules->registry.alias(name, of); }

Result<std::string> Server::listen(const std::string& text) {
  if (!state_->threads_allowed())
    return fail(Errc::bad_setting, "threads is " + std::to_string(state_->options.threads) +
                                       ", allowed are 1 to " + std::to_string(most_threads));
  const auto address = parse_address(text);
  if (!address) return std::unexpected(address.error());
  if (address->fallback)
    return fail(Errc::bad_address, text + ": ?fallback= is for clients; a server listens at both addresses");
  if (address->secure())
    if (Result<void> read = state_->read_certificates(); !read)
      return std::unexpected(std::move(read.error()));
  auto listener = rpc::listen(
      state_->lanes[0]->io, *address, state_->options.transport, state_->tls, state_->all_threads(),
      [weak = std::weak_ptr(state_), at = *address](asio::io_context& io, TransportPtr transport) {
        if (const auto state = weak.lock())
          state->take(state, io, state->with_http(io, at, std::move(transport)));
      },
      state_->newcomers);
  if (!listener) return std::unexpected(std::move(listener.error()));
  state_->listeners.push_back(std::move(*listener));
  return state_->listeners.back()->address().text();
}

Result<void> Server::renew_certificates() { return state_->read_certificates(); }

void Server::drain() {
  state_->listen_no_more();
  for (std::size_t i = 0; i < state_->lanes.size(); ++i)
    state_->in_lane(i, [](Lane& lane) {
      const auto connections = lane.connections;  // a connection may leave during the loop
      for (const auto& [key, connection] : connections) connection->drain();
    });
}

void Server::stop() {
  state_->stop_listening();
  for (std::size_t i = 0; i < state_->lanes.size(); ++i)
    state_->in_lane(i, [state = state_.get()](Lane& lane) { state->stop(lane); });
}

std::uint32_t Server::open() const { return state_->open.load(); }

std::vector<MethodReport> Server::method_stats() const {
  return state_->keeper ? state_->keeper->reports() : std::vector<MethodReport>();
}

ServerStats Server::stats() const {
  ServerStats stats;
  stats.connections = state_->connections.load();
  stats.refused = state_->refused.load();
  stats.open = open();
  for (const auto& lane : state_->lanes) {
    stats.compressed_sent += lane->totals->compressed_sent.now();
    stats.compressed_received += lane->totals->compressed_received.now();
  }
  return stats;
}

}  // namespace weir::rpc
