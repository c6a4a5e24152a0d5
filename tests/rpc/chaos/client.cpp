// The client that killed_client_test kills: writes to a stream and reads what comes back, until it is killed.
//
// usage: rpc_chaos_client ADDRESS
#include "rpc/client.hpp"

#include <asio/co_spawn.hpp>
#include <cstdio>

#include "tests/rpc/chaos/endless.hpp"

namespace {

asio::awaitable<void> stream(std::string address) {
  auto client = co_await weir::rpc::connect(address);
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().what.c_str());
    co_return;
  }
  auto both = client->stream<chaos::endless>();
  const std::string text(10'000, 'x');
  for (;;) {
    if (const auto written = co_await both.write(text); !written) co_return;
    if (const auto back = co_await both.read(); !back) co_return;
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  asio::io_context io(1);
  asio::co_spawn(io, stream(words[1]), [](const std::exception_ptr&) {});
  io.run();
  return 1;  // reached only if it was not killed
}
