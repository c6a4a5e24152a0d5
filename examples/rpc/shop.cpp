// A service with aggregates, a member function, a coroutine and errors.
//
//   rpc_shop serve ADDRESS       serves until it is interrupted, then lets calls under way end
//   rpc_shop call ADDRESS        calls each function once
#include "shop.hpp"

#include <asio/co_spawn.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <cstdio>
#include <string_view>

#include "rpc/client.hpp"
#include "rpc/server.hpp"

namespace rpc = weir::rpc;

namespace shop {

std::int32_t add(std::int32_t a, std::int32_t b) { return a + b; }

// If the caller gives up, the timer's wait ends with operation_aborted, and the coroutine with it.
asio::awaitable<std::string> brew(std::string drink, rpc::Context& context) {
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(20));
  co_await timer.async_wait(asio::use_awaitable);
  co_return drink + " for " + context.peer();
}

std::optional<Item> Stock::find(std::string_view name) const {
  const auto found = stock_.find(name);
  if (found == stock_.end()) return std::nullopt;
  return Item{found->first, found->second};
}

rpc::Result<std::uint32_t> Stock::take(const Item& wanted) {
  const auto found = stock_.find(wanted.name);
  if (found == stock_.end() || found->second < wanted.count)
    return rpc::fail(rpc::Errc::failed,
                     "there are not " + std::to_string(wanted.count) + " of " + wanted.name);
  return found->second -= wanted.count;
}

}  // namespace shop

namespace {

int serve(const std::string& where) {
  asio::io_context io(1);
  shop::Stock stock;
  rpc::ServerOptions options;
  options.stats = true;               // for `weir rpc stats`
  options.http = rpc::HttpOptions();  // for curl
  rpc::Server server(io, options);
  server.add<shop::add, shop::brew>();
  server.add<&shop::Stock::find, &shop::Stock::take>(stock);
  const auto address = server.listen(where);
  if (!address) return std::fprintf(stderr, "%s\n", address.error().what.c_str()), 1;
  std::printf("serving at %s\n", address->c_str());
  std::fflush(stdout);
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](const std::error_code&, int) { server.drain(); });
  io.run();
  return 0;
}

asio::awaitable<int> call_each(std::string address) {
  auto client = co_await rpc::connect(address);
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().what.c_str());
    co_return 1;
  }
  std::printf("2 + 3 = %d\n", (co_await client->call<shop::add>(2, 3)).value_or(0));
  if (const auto drink = co_await client->call<shop::brew>("tea")) std::printf("%s\n", drink->c_str());
  if (const auto item = co_await client->call<&shop::Stock::find>("bolt"); item && *item)
    std::printf("%u of %s\n", (*item)->count, (*item)->name.c_str());
  const shop::Item wanted{"nut", 100};  // named: GCC 12 miscompiles an aggregate temporary in an awaited call
  if (const auto left = co_await client->call<&shop::Stock::take>(wanted); !left)
    std::printf("%s: %s\n", std::string(name_of(left.error().code)).c_str(), left.error().what.c_str());
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what == "serve") return serve(argv[2]);
  if (what != "call") return std::fprintf(stderr, "usage: rpc_shop serve|call ADDRESS\n"), 2;
  asio::io_context io(1);
  int status = 1;
  asio::co_spawn(io, call_each(argv[2]), [&](const std::exception_ptr&, int ended) { status = ended; });
  io.run();
  return status;
}
