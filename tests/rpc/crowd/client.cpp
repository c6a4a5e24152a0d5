// The clients of the crowd test: opens COUNT connections, makes one call on each when it is connected,
// and one on all at once when all are connected. Then prints how many of both were answered, waits
// until it may end, and ends.
//
// usage: rpc_crowd_client ADDRESS COUNT
#include "rpc/client.hpp"

#include <asio/co_spawn.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "tests/rpc/services.hpp"

namespace {

using weir::rpc::Client;
using weir::rpc::Result;

asio::awaitable<void> crowd(asio::io_context& io, std::string address, std::size_t count) {
  std::vector<Client> clients;
  clients.reserve(count);
  std::size_t first = 0, together = 0, heard = 0;
  weir::rpc::ConnectOptions options;
  options.transport.rdma_channel.shared_receives = true;
  while (clients.size() < count) {
    auto client = co_await weir::rpc::connect(address, options);
    if (!client) throw std::runtime_error(client.error().what);
    clients.push_back(std::move(*client));
    const auto answered = co_await clients.back().call<shop::nothing>();
    first += answered ? 1 : 0;
  }
  asio::steady_timer all(io, asio::steady_timer::time_point::max());
  for (Client& client : clients)
    asio::co_spawn(io, client.call<shop::nothing>(),
                   [&](const std::exception_ptr&, const Result<void>& answer) {
                     together += answer ? 1 : 0;
                     if (++heard == count) all.cancel();
                   });
  std::error_code cancelled;
  co_await all.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  std::printf("%zu %zu\n", first, together);
  std::fflush(stdout);
  asio::posix::stream_descriptor input(io, 0);
  char byte = 0;
  std::error_code end;
  co_await asio::async_read(input, asio::buffer(&byte, 1), asio::redirect_error(asio::use_awaitable, end));
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  asio::io_context io(1);
  int status = 0;
  asio::co_spawn(io, crowd(io, words[1], std::strtoul(words[2], nullptr, 10)),
                 [&](const std::exception_ptr& thrown) {
                   try {
                     if (thrown) std::rethrow_exception(thrown);
                   } catch (const std::exception& why) {
                     std::fprintf(stderr, "%s\n", why.what());
                     status = 1;
                   }
                 });
  io.run();
  return status;
}
