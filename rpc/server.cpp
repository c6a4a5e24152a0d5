#include "rpc/server.hpp"

#include <unordered_set>

#include "rpc/reflection.hpp"
#include "rpc/stats_keeper.hpp"

namespace weir::rpc {

struct Server::State {
  State(asio::io_context& on, ServerOptions with) : io(on), options(std::move(with)) {}

  asio::io_context& io;
  const ServerOptions options;
  Registry registry;
  std::shared_ptr<StatsKeeper> keeper;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::unordered_map<ServerConnection*, std::shared_ptr<ServerConnection>> connections;
  ServerStats stats;
  bool draining = false;

  void take(const std::shared_ptr<State>& self, TransportPtr transport) {
    if (draining || connections.size() >= options.limits.most_connections) {
      ++stats.refused;
      return transport->close();
    }
    ++stats.connections;
    auto connection = std::make_shared<ServerConnection>(
        io, std::move(transport), registry, options.authentication, options.limits,
        [weak = std::weak_ptr(self)](ServerConnection& gone) {
          if (const auto state = weak.lock()) state->connections.erase(&gone);
        });
    connections.emplace(connection.get(), connection);
    connection->start();
  }
};

Server::Server(asio::io_context& io) : Server(io, ServerOptions()) {}
Server::Server(asio::io_context& io, ServerOptions options)
    : state_(std::make_shared<State>(io, std::move(options))) {
  add_reflection(state_->registry);
  ServerChain chain = state_->options.interceptors;
  if (state_->options.stats) {
    state_->keeper = std::make_shared<StatsKeeper>();
    state_->registry.add(state_->keeper->method());
    chain.insert(chain.begin(), state_->keeper);  // outermost: sees what the others refuse
  }
  state_->registry.intercept(std::move(chain));
}
Server::~Server() { stop(); }

void Server::add(Registered row) { state_->registry.add(std::move(row)); }

Result<std::string> Server::listen(const std::string& text) {
  const auto address = parse_address(text);
  if (!address) return std::unexpected(address.error());
  if (address->fallback)
    return fail(Errc::bad_address, text + ": ?fallback= is for clients; a server listens at both addresses");
  auto listener = rpc::listen(state_->io, *address, state_->options.transport,
                              [weak = std::weak_ptr(state_)](TransportPtr transport) {
                                if (const auto state = weak.lock()) state->take(state, std::move(transport));
                              });
  if (!listener) return std::unexpected(std::move(listener.error()));
  state_->listeners.push_back(std::move(*listener));
  return state_->listeners.back()->address().text();
}

void Server::drain() {
  state_->draining = true;
  state_->listeners.clear();
  const auto connections = state_->connections;  // one may leave at once
  for (const auto& [key, connection] : connections) connection->drain();
}

void Server::stop() {
  state_->draining = true;
  state_->listeners.clear();
  const auto connections = std::exchange(state_->connections, {});
  for (const auto& [key, connection] : connections) connection->stop();
}

std::uint32_t Server::open() const { return static_cast<std::uint32_t>(state_->connections.size()); }

std::vector<MethodReport> Server::method_stats() const {
  return state_->keeper ? state_->keeper->reports() : std::vector<MethodReport>();
}

ServerStats Server::stats() const {
  ServerStats stats = state_->stats;
  stats.open = open();
  return stats;
}

}  // namespace weir::rpc
