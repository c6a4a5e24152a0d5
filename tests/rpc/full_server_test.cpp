// A server that runs as many of a client's calls as it may: it still reads what belongs to them, and further
// calls wait for their turn.
#include <gtest/gtest.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>

#include "rpc/stream.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace full {

int noted = 0;
int note() { return ++noted; }

// Delivers each as it arrives.
asio::awaitable<void> shout(weir::rpc::Reader<std::string> in, weir::rpc::Writer<std::string> out) {
  while (auto word = co_await in.read()) {
    const std::string loud = *word + "!";
    if (const auto written = co_await out.write(loud); !written) co_return;
  }
}

asio::awaitable<void> keep(std::string, weir::rpc::Context& context) { return shop::wait_for_ever(context); }

}  // namespace full

namespace weir::rpc {
namespace {

class FullServer : public testing_support::RpcTest {
 protected:
  asio::cancellation_signal stop_first, stop_second;

  // With one call of this client that runs until stop_first, and no room for another.
  void with_full_server(std::function<asio::awaitable<void>(Client&)> body) {
    ServerLimits limits;
    limits.max_in_flight = 1;
    serve<shop::wait_for_ever, shop::nothing, full::note, full::shout>(limited(limits));
    shop::waits = {};
    full::noted = 0;
    with_client(address, [this, body](Client& client) -> asio::awaitable<void> {
      asio::co_spawn(io, client.call<shop::wait_for_ever>(),
                     asio::bind_cancellation_slot(stop_first.slot(),
                                                  [](const std::exception_ptr&, const Result<void>&) {}));
      while (shop::waits.started == 0) co_await turn();
      co_await body(client);
    });
  }
  asio::awaitable<void> turn() { return asio::post(io, asio::use_awaitable); }
};

TEST_P(FullServer, hears_that_a_running_call_is_cancelled) {
  with_full_server([this](Client& client) -> asio::awaitable<void> {
    int result = 0;
    asio::co_spawn(io, client.call<full::note>(),
                   [&](const std::exception_ptr&, const Result<int>& noted) { result = noted.value_or(-1); });
    co_await turn();  // it is in flight
    stop_first.emit(asio::cancellation_type::terminal);
    while (shop::waits.cancelled == 0 || result == 0) co_await turn();
    EXPECT_EQ(result, 1);
  });
}

TEST_P(FullServer, does_not_run_what_is_cancelled_before_its_turn) {
  with_full_server([this](Client& client) -> asio::awaitable<void> {
    bool ended = false;
    asio::co_spawn(io, client.call<full::note>(),
                   asio::bind_cancellation_slot(stop_second.slot(),
                                                [&](const std::exception_ptr&, const Result<int>& noted) {
                                                  EXPECT_EQ(noted.error().code, Errc::cancelled);
                                                  ended = true;
                                                }));
    EXPECT_TRUE(co_await client.ping(std::chrono::seconds(30)));  // behind it on the wire
    stop_second.emit(asio::cancellation_type::terminal);
    while (!ended) co_await turn();
    stop_first.emit(asio::cancellation_type::terminal);
    EXPECT_TRUE(co_await client.call<shop::nothing>());
    EXPECT_EQ(full::noted, 0);
  });
}

TEST_P(FullServer, that_drains_refuses_at_once_what_waits_for_its_turn) {
  with_full_server([this](Client& client) -> asio::awaitable<void> {
    std::optional<Errc> refused;
    asio::co_spawn(io, client.call<full::note>(), [&](const std::exception_ptr&, const Result<int>& noted) {
      refused = noted ? Errc() : noted.error().code;
    });
    EXPECT_TRUE(co_await client.ping(std::chrono::seconds(30)));  // behind it on the wire
    server->drain();
    while (!refused) co_await turn();
    EXPECT_EQ(*refused, Errc::draining);
    EXPECT_EQ(shop::waits.cancelled, 0);
    stop_first.emit(asio::cancellation_type::terminal);
    while (shop::waits.cancelled == 0) co_await turn();
    EXPECT_EQ(full::noted, 0);
  });
}

// A few hundred bytes on the wire become a megabyte in the function.
TEST_P(FullServer, runs_no_more_calls_at_once_than_it_has_room_for_their_arguments) {
  ServerOptions options;
  options.limits.max_running_bytes = 3 << 19;
  options.compression.with = Compression::zstd;
  serve<full::keep>(std::move(options));
  shop::waits = {};
  ConnectOptions connecting = connect_options();
  connecting.compression.with = Compression::zstd;
  run([&]() -> asio::awaitable<void> {
    auto client = co_await connect(address, connecting);
    EXPECT_TRUE(client);
    if (!client) co_return;
    EXPECT_TRUE(co_await client->ping(std::chrono::seconds(30)));  // its hello announced compression
    const std::string text(1 << 20, 'x');
    asio::cancellation_signal stops[3];
    for (asio::cancellation_signal& stop : stops)
      asio::co_spawn(
          io, client->call<full::keep>(text),
          asio::bind_cancellation_slot(stop.slot(), [](const std::exception_ptr&, const Result<void>&) {}));
    EXPECT_TRUE(co_await client->ping(std::chrono::seconds(30)));
    while (shop::waits.started < 2) co_await turn();
    EXPECT_EQ(shop::waits.started, 2);
    stops[0].emit(asio::cancellation_type::terminal);
    while (shop::waits.started < 3) co_await turn();
    for (asio::cancellation_signal& stop : stops) stop.emit(asio::cancellation_type::terminal);
    while (shop::waits.cancelled < 3) co_await turn();
    EXPECT_GT(client->stats().compressed_sent.bodies, 0u);
  });
}

TEST_P(FullServer, answers_pings) {
  with_full_server([](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.ping(std::chrono::seconds(30)));
  });
}

TEST_P(FullServer, goes_on_with_streams_and_opens_others_when_there_is_room) {
  ServerLimits limits;
  limits.max_in_flight = 1;
  serve<shop::wait_for_ever, full::note, full::shout>(limited(limits));
  shop::waits = {};
  full::noted = 0;
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    auto early = client.stream<full::shout>();
    asio::co_spawn(io, client.call<shop::wait_for_ever>(),
                   asio::bind_cancellation_slot(stop_first.slot(),
                                                [](const std::exception_ptr&, const Result<void>&) {}));
    while (shop::waits.started == 0) co_await turn();
    asio::co_spawn(io, client.call<full::note>(), [](const std::exception_ptr&, const Result<int>&) {});
    auto late = client.stream<full::shout>();
    for (const char* word : {"a", "b", "c"}) {
      EXPECT_TRUE(co_await late.write(std::string(word)));
      EXPECT_TRUE(co_await early.write(std::string(word)));
      const auto answer = co_await early.read();
      EXPECT_EQ(answer.value_or("?"), std::string(word) + "!");
    }
    late.close_write();
    EXPECT_EQ(full::noted, 0);
    stop_first.emit(asio::cancellation_type::terminal);
    for (const char* word : {"a", "b", "c"}) {
      const auto answer = co_await late.read();
      EXPECT_EQ(answer.value_or("?"), std::string(word) + "!");
    }
    EXPECT_TRUE(co_await late.finish());
    EXPECT_TRUE(co_await early.finish());
    EXPECT_EQ(full::noted, 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Over, FullServer, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
