// Three servers of one service and a pool that calls them: in turn, without the one that goes away, and by
// key. Usage: rpc_pool_and_balancing [tcp|rdma]. In a program of your own the servers are other processes,
// and rpc::watched_file or rpc::dns says where.
#include <algorithm>
#include <asio/co_spawn.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "rpc/pool.hpp"
#include "rpc/server.hpp"

namespace rpc = weir::rpc;

namespace demo {
struct Desk {
  std::string name;
  std::string who() { return name; }
};
}  // namespace demo

// It may run twice, so it is called again if a connection is lost. Declared where both ends see it.
template <>
inline constexpr bool weir::rpc::idempotent<&demo::Desk::who> = true;

struct Service {
  demo::Desk desk;
  std::unique_ptr<rpc::Server> server;
};

// A call never waits for a connection while another one is ready, so at first some servers get more than
// their share.
asio::awaitable<void> connect_all(rpc::Pool& pool) {
  const auto is_connected = [](const rpc::PooledServer& one) { return one.connections > 0; };
  do {
    if (!co_await pool.call<&demo::Desk::who>()) co_return;
  } while (!std::ranges::all_of(pool.servers(), is_connected));
}

asio::awaitable<void> count(rpc::Pool& pool) {
  std::map<std::string, int> calls;
  for (int i = 0; i < 12; ++i) {
    const auto who = co_await pool.call<&demo::Desk::who>();
    if (who) ++calls[*who];
  }
  std::printf("one %d, two %d, three %d\n", calls["one"], calls["two"], calls["three"]);
}

asio::awaitable<void> talk(asio::io_context& io, std::vector<Service>& services,
                           std::vector<std::string> addresses) {
  rpc::PoolOptions options;
  options.seed = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  options.retry.attempts = 4;
  {
    rpc::Pool pool(io, rpc::static_list(addresses), options);
    co_await connect_all(pool);
    co_await count(pool);
    services[1].server->stop();
    co_await count(pool);
    for (const rpc::PooledServer& server : pool.servers())
      std::printf("%s over %s: %s\n", server.address.c_str(), server.transport.c_str(),
                  server.failures == 0 ? "well" : server.last_error.c_str());
  }
  options.balancing = rpc::Balancing::consistent_hash;
  rpc::Pool pool(io, rpc::static_list(addresses), options);
  rpc::CallOptions for_anna;
  for_anna.key = rpc::hash_of("anna");
  const auto first = co_await pool.call<&demo::Desk::who>(for_anna);
  const auto second = co_await pool.call<&demo::Desk::who>(for_anna);
  if (first && second) std::printf("anna at %s, and at %s again\n", first->c_str(), second->c_str());
  for (Service& service : services) service.server->stop();
}

int main(int argc, char** argv) {
  asio::io_context io(1);
  std::vector<Service> services(3);
  std::vector<std::string> addresses;
  const char* const names[] = {"one", "two", "three"};
  for (std::size_t i = 0; i < services.size(); ++i) {
    services[i].desk.name = names[i];
    services[i].server = std::make_unique<rpc::Server>(io);
    services[i].server->add<&demo::Desk::who>(services[i].desk);
    const auto address =
        services[i].server->listen(std::string(argc > 1 ? argv[1] : "tcp") + "://127.0.0.1:0");
    if (!address) return std::fprintf(stderr, "%s\n", address.error().what.c_str()), 1;
    addresses.push_back(*address);
  }
  asio::co_spawn(io, talk(io, services, addresses), [](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
  io.run();
}
