// Streams: one that the server writes, one that the client writes, and both at once.
// Usage: rpc_streaming [ADDRESS], tcp://127.0.0.1:0 if none is given; rpc_streaming serve ADDRESS only
// serves, for `weir rpc call`.
#include <asio/co_spawn.hpp>
#include <cstdio>
#include <string>
#include <string_view>

#include "rpc/client.hpp"
#include "rpc/server.hpp"

namespace rpc = weir::rpc;

namespace demo {

struct Tick {
  std::uint32_t number = 0;
  std::uint32_t square = 0;
};

asio::awaitable<void> ticks(std::uint32_t count, rpc::Writer<Tick> out) {
  for (Tick tick; tick.number < count; ++tick.number) {
    tick.square = tick.number * tick.number;
    const auto written = co_await out.write(tick);  // waits while the caller does not read
    if (!written) co_return;                        // the caller no longer listens
  }
}

asio::awaitable<std::int64_t> total(rpc::Reader<std::int32_t> in) {
  std::int64_t sum = 0;
  while (auto number = co_await in.read()) sum += *number;
  co_return sum;
}

asio::awaitable<void> upper(rpc::Reader<std::string> in, rpc::Writer<std::string> out) {
  while (auto line = co_await in.read()) {
    for (char& c : *line) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const auto written = co_await out.write(*line);
    if (!written) co_return;
  }
}

}  // namespace demo

asio::awaitable<void> talk(std::string address) {
  auto client = co_await rpc::connect(address);
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().what.c_str());
    co_return;
  }

  auto ticks = client->stream<demo::ticks>(4u);
  while (auto tick = co_await ticks.read()) std::printf("%u squared is %u\n", tick->number, tick->square);
  if (const auto ended = co_await ticks.finish(); !ended)
    std::printf("ticks: %s\n", ended.error().what.c_str());

  auto total = client->stream<demo::total>();
  for (std::int32_t i = 1; i <= 1000; ++i)
    if (!co_await total.write(i)) break;
  const auto sum = co_await total.finish();
  if (sum) std::printf("the sum is %lld\n", static_cast<long long>(*sum));

  auto upper = client->stream<demo::upper>();
  for (const std::string_view word : {"there", "and", "back"}) {
    if (!co_await upper.write(word)) break;
    const auto answer = co_await upper.read();
    if (answer) std::printf("%s\n", answer->c_str());
  }
  upper.close_write();
  const auto ended = co_await upper.finish();
  std::puts(ended ? "done" : ended.error().what.c_str());
}

int main(int argc, char** argv) {
  asio::io_context io(1);
  rpc::Server server(io);
  server.add<demo::ticks, demo::total, demo::upper>();
  const bool only_serve = argc > 2 && std::string_view(argv[1]) == "serve";
  const auto address = server.listen(only_serve ? argv[2] : argc > 1 ? argv[1] : "tcp://127.0.0.1:0");
  if (!address) return std::fprintf(stderr, "%s\n", address.error().what.c_str()), 1;
  if (only_serve) {
    std::printf("serving at %s\n", address->c_str());
    std::fflush(stdout);
  } else {
    asio::co_spawn(io, talk(*address), [&](const std::exception_ptr&) { server.stop(); });
  }
  io.run();
}
