// A function, a server and a call. Usage: rpc_echo [ADDRESS], tcp://127.0.0.1:0 if none is given.
#include <asio/co_spawn.hpp>
#include <cstdio>
#include <string>

#include "rpc/client.hpp"
#include "rpc/server.hpp"

namespace rpc = weir::rpc;

std::string echo(std::string text) { return text; }

asio::awaitable<void> talk(std::string address) {
  auto client = co_await rpc::connect(address);
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().what.c_str());
    co_return;
  }
  const auto answer = co_await client->call<echo>("hello over " + address);
  std::puts(answer ? answer->c_str() : answer.error().what.c_str());
}

int main(int argc, char** argv) try {
  asio::io_context io(1);
  rpc::Server server(io);
  server.add<echo>();
  const auto address = server.listen(argc > 1 ? argv[1] : "tcp://127.0.0.1:0");
  if (!address) return std::fprintf(stderr, "%s\n", address.error().what.c_str()), 1;

  asio::co_spawn(io, talk(*address), [&](const std::exception_ptr&) { server.stop(); });
  io.run();  // returns when the server has stopped and the client is gone
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
