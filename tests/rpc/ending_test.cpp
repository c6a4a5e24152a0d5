// How a server ends a connection that it refuses: after all that it has to say, over every transport.
#include <gtest/gtest.h>

#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include "rpc/orderly_end.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

using Next = OrderlyEnd::Next;
using std::chrono::milliseconds;
constexpr OrderlyEnd::TimePoint start{std::chrono::hours(1)};

TEST(OrderlyEnd, ends_its_output_once_when_all_is_written) {
  OrderlyEnd end({.linger = milliseconds(10)}, start);
  EXPECT_EQ(end.on_written(false), Next::wait);
  EXPECT_EQ(end.on_written(true), Next::end_output);
  EXPECT_EQ(end.on_written(true), Next::wait);
}

TEST(OrderlyEnd, closes_at_a_peer_that_never_stops_sending) {
  OrderlyEnd end({.linger = milliseconds(10), .most_dropped_bytes = 100}, start);
  EXPECT_EQ(end.on_dropped(60), Next::wait);
  EXPECT_EQ(end.on_dropped(40), Next::wait);
  EXPECT_EQ(end.on_dropped(1), Next::close);
}

TEST(OrderlyEnd, closes_when_its_time_is_over_whatever_is_left) {
  OrderlyEnd end({.linger = milliseconds(10)}, start);
  EXPECT_EQ(end.until(), start + milliseconds(10));
  EXPECT_EQ(end.on_time(start + milliseconds(9)), Next::wait);
  EXPECT_EQ(end.on_time(start + milliseconds(10)), Next::close);
}

class Ending : public testing_support::RpcTest {
 protected:
  void start(ServerOptions options) { serve<shop::echo, shop::sized, shop::nothing>(std::move(options)); }
  static ServerOptions bodies_up_to(std::uint32_t bytes) {
    ServerOptions options;
    options.limits.frame.body_bytes = bytes;
    return options;
  }
};

TEST_P(Ending, why_comes_behind_all_replies_that_wait_to_be_written) {
  constexpr std::uint32_t limit = 1 << 20;
  constexpr int calls = 8;
  start(bodies_up_to(limit));
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    int ended = 0, good = 0;
    for (int i = 0; i < calls; ++i)
      asio::co_spawn(executor, client.call<shop::sized>(limit - 100),
                     [&](const std::exception_ptr&, const Result<std::string>& result) {
                       ++ended;
                       good += result && result->size() == limit - 100 ? 1 : 0;
                     });
    const std::string too_much(limit + 1, 'x');
    const auto refused = co_await client.call<shop::echo>(too_much);
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::too_large) << refused.error().what;
    while (ended < calls) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_EQ(good, calls);
  });
  run_until([this] { return server->open() == 0; });
}

TEST_P(Ending, why_reaches_a_client_that_goes_on_sending) {
  start(bodies_up_to(1000));
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    const std::string too_much(12 << 20, 'x');
    const auto refused = co_await client.call<shop::echo>(too_much);
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::too_large) << refused.error().what;
  });
  run_until([this] { return server->open() == 0; });
}

TEST_P(Ending, who_is_refused_learns_why_with_calls_behind_the_first) {
  ServerOptions options;
  options.authentication.authenticate = [](const Credentials&) -> Result<Identity> {
    return fail(Errc::unauthenticated, "nobody is known here");
  };
  start(std::move(options));
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    constexpr int calls = 20;
    const std::string text(256 << 10, 'x');
    int ended = 0, told = 0;
    for (int i = 0; i < calls; ++i)
      asio::co_spawn(executor, client.call<shop::echo>(text),
                     [&](const std::exception_ptr&, const Result<std::string>& result) {
                       ++ended;
                       told += !result && result.error().what == "nobody is known here" ? 1 : 0;
                     });
    while (ended < calls) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_EQ(told, calls);
  });
  run_until([this] { return server->open() == 0; });
}

INSTANTIATE_TEST_SUITE_P(Over, Ending, testing_support::transports, testing_support::transport_name);

// A peer without any manners, of which the bytes on the wire are known.
class RudePeer : public Ending {
 protected:
  asio::ip::tcp::socket peer{io};

  void send_nonsense() {
    const auto at = parse_address(address);
    peer.connect({asio::ip::make_address(at->host), at->port});
    const std::string nonsense(frame_header_bytes, '?');
    asio::write(peer, asio::buffer(nonsense));
  }
  void read_to_the_end(std::string& text, std::error_code& error) {
    bool ended = false;
    asio::async_read(peer, asio::dynamic_buffer(text), [&](std::error_code why, std::size_t) {
      error = why;
      ended = true;
    });
    run_until([&] { return ended; });
  }
};

TEST_P(RudePeer, reads_why_and_then_the_end_though_it_still_sends) {
  start(ServerOptions());
  send_nonsense();
  run_until([this] { return peer.available() > 0; });
  const std::string more(100'000, '!');
  asio::write(peer, asio::buffer(more));
  std::string text;
  std::error_code error;
  read_to_the_end(text, error);
  EXPECT_EQ(error, asio::error::eof) << error.message();
  EXPECT_GT(text.size(), frame_header_bytes);
  EXPECT_EQ(server->open(), 1u) << "it is this end's to close";
  peer.close();
  run_until([this] { return server->open() == 0; });
}

TEST_P(RudePeer, is_left_when_it_never_closes) {
  ServerOptions options;
  options.limits.end.linger = milliseconds(1);
  start(std::move(options));
  send_nonsense();
  run_until([this] { return server->stats().connections == 1 && server->open() == 0; });
}

TEST_P(RudePeer, is_left_when_it_sends_without_end) {
  ServerOptions options;
  options.limits.end = {.linger = std::chrono::hours(1), .most_dropped_bytes = 50'000};
  start(std::move(options));
  send_nonsense();
  run_until([this] { return peer.available() > 0; });
  const std::string more(100'000, '!');
  asio::write(peer, asio::buffer(more));
  run_until([this] { return server->open() == 0; });
}

TEST_P(RudePeer, goes_at_once_with_its_server) {
  ServerOptions options;
  options.limits.end.linger = std::chrono::hours(1);
  start(std::move(options));
  send_nonsense();
  run_until([this] { return peer.available() > 0; });
  EXPECT_EQ(server->open(), 1u);
  server->stop();
  EXPECT_EQ(server->open(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Over, RudePeer, testing::Values("tcp"), testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
