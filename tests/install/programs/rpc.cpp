// A user's program, built against an installed Weir: a function, a server and a
// call. Usage: rpc ADDRESS
#include <asio/co_spawn.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <weir/rpc/client.hpp>
#include <weir/rpc/server.hpp>

std::string greet(std::string name) { return "hello, " + name; }

asio::awaitable<void> talk(std::string address) {
  auto client = co_await weir::rpc::connect(address);
  if (!client) throw std::runtime_error(client.error().what);
  const auto answer = co_await client->call<greet>("stranger");
  std::puts(answer ? answer->c_str() : answer.error().what.c_str());
}

int main(int, char** words) {
  asio::io_context io(1);
  weir::rpc::Server server(io);
  server.add<greet>();
  const auto address = server.listen(words[1]);
  if (!address) return std::puts(address.error().what.c_str()), 1;
  asio::co_spawn(io, talk(*address), [&](const std::exception_ptr& thrown) {
    server.stop();
    if (thrown) std::rethrow_exception(thrown);
  });
  io.run();
}
