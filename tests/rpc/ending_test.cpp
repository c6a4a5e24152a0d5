// How a server ends a connection that it refuses: after it has sent everything, over every transport.
#include <gtest/gtest.h>

#include <array>
#include <asio/generic/stream_protocol.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>

#include "rpc/link/graceful_close.hpp"
#include "rpc/transport/tls_transport.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

using Next = GracefulClose::Next;
using std::chrono::milliseconds;
constexpr GracefulClose::TimePoint start{std::chrono::hours(1)};

TEST(GracefulClose, ends_its_output_once_when_all_is_written) {
  GracefulClose end({.linger = milliseconds(10)}, start);
  EXPECT_EQ(end.on_written(false), Next::wait);
  EXPECT_FALSE(end.output_ended());
  EXPECT_EQ(end.on_written(true), Next::end_output);
  EXPECT_TRUE(end.output_ended());
  EXPECT_EQ(end.on_written(true), Next::wait);
}

TEST(GracefulClose, closes_at_a_peer_that_never_stops_sending) {
  GracefulClose end({.linger = milliseconds(10), .max_dropped_bytes = 100}, start);
  EXPECT_EQ(end.on_dropped(60), Next::wait);
  EXPECT_EQ(end.on_dropped(40), Next::wait);
  EXPECT_EQ(end.on_dropped(1), Next::close);
}

TEST(GracefulClose, closes_when_its_time_is_over_whatever_is_left) {
  GracefulClose end({.linger = milliseconds(10)}, start);
  EXPECT_EQ(end.until(), start + milliseconds(10));
  EXPECT_EQ(end.on_time(start + milliseconds(9)), Next::wait);
  EXPECT_EQ(end.on_time(start + milliseconds(10)), Next::close);
}

class Ending : public testing_support::RpcTest {
 protected:
  void start(ServerOptions options) { serve<shop::echo, shop::sized, shop::nothing>(std::move(options)); }
  static ServerOptions bodies_up_to(std::uint32_t bytes) {
    ServerOptions options;
    options.limits.frame.body_bytes = options.limits.reply.body_bytes = bytes;
    return options;
  }
  asio::awaitable<Result<void>> connect_and_call() {
    ConnectOptions options = connect_options();
    auto client = co_await connect(address, options);
    if (!client) co_return std::unexpected(std::move(client.error()));
    co_return co_await client->call<shop::nothing>();
  }
};

// More must be written first than a transport accepts at once, so closing immediately would lose it.
TEST_P(Ending, why_comes_behind_all_replies_that_wait_to_a_client_that_goes_on_sending) {
  constexpr std::uint32_t limit = 1 << 20;
  constexpr int calls_before = 8, calls_behind = 20;
  start(bodies_up_to(limit));
  ConnectionLimits sends_more;
  sends_more.request.body_bytes = 64 << 20;
  const auto calls = [&](Client& client) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    int ended = 0, good = 0, told = 0, lost = 0;
    const auto count = [&](const std::exception_ptr&, const Result<std::string>& result) {
      ++ended;
      good += result && result->size() == limit - 100 ? 1 : 0;
      told += !result && result.error().code == Errc::too_large ? 1 : 0;
      lost += !result && result.error().code == Errc::connection_lost &&
              result.error().what.starts_with("the server ended the connection: the peer sends a frame of");
    };
    const std::string too_much(12 << 20, 'x');
    for (int i = 0; i < calls_before; ++i)
      asio::co_spawn(executor, client.call<shop::sized>(limit - 100), count);
    asio::co_spawn(executor, client.call<shop::echo>(too_much), count);
    for (int i = 0; i < calls_behind; ++i)
      asio::co_spawn(executor, client.call<shop::echo>("in vain"), count);
    while (ended < calls_before + 1 + calls_behind) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_EQ(good, calls_before);
    EXPECT_EQ(told, 1);
    EXPECT_EQ(lost, calls_behind);
  };
  with_client(address, calls, sends_more);
  run_until([this] { return server->open() == 0; });
}

// Whenever a server starts to drain while a client connects: either the call is served, or its caller is told
// that it did not run.
TEST_P(Ending, nobody_who_connects_while_a_server_drains_is_left_without_a_reason) {
  constexpr int most_turns = 60;
  for (const std::uint32_t threads : {1u, 2u})
    for (int turns = 0; turns < most_turns; ++turns) {
      ServerOptions options;
      options.threads = threads;
      start(std::move(options));
      bool ended = false;
      asio::co_spawn(io, connect_and_call(), [&](const std::exception_ptr&, const Result<void>& result) {
        ended = true;
        EXPECT_TRUE(result || did_not_run(result.error().code))
            << "after " << turns << " turns: " << name_of(result.error().code) << ": " << result.error().what;
      });
      for (int i = 0; i < turns; ++i) io.poll_one();
      server->drain();
      run_until([&] { return ended; });
      server.reset();
    }
}

INSTANTIATE_TEST_SUITE_P(Over, Ending, testing_support::transports, testing_support::transport_name);

// A peer without a library, whose bytes on the wire are known.
class RudePeer : public Ending {
 protected:
  asio::generic::stream_protocol::socket peer{io};

  void connect_peer() {
    const auto at = parse_address(address);
    if (over("unix"))
      peer.connect(asio::local::stream_protocol::endpoint(at->path));
    else
      peer.connect(asio::ip::tcp::endpoint(asio::ip::make_address(at->host), at->port));
  }
  void send(const std::string& bytes) { asio::write(peer, asio::buffer(bytes)); }
  void send_nonsense() {
    connect_peer();
    send(nonsense);
  }
  // What the server sends until it closes.
  std::string read_all(std::error_code& error) {
    std::string text;
    bool ended = false;
    asio::async_read(peer, asio::dynamic_buffer(text), [&](std::error_code why, std::size_t) {
      error = why;
      ended = true;
    });
    run_until([&] { return ended; });
    return text;
  }

  static std::string bytes_of(const FrameHeader& header) {
    std::array<std::byte, frame_header_bytes> bytes;
    encode(header, bytes.data());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static Result<FrameHeader> header_of(std::string_view text) {
    if (text.size() < frame_header_bytes) return fail(Errc::bad_reply, "nothing came");
    return parse_header(as_bytes(text).first<frame_header_bytes>());
  }

  // Calls with more results than any transport accepts at once, followed by invalid bytes.
  static constexpr std::uint32_t calls = 12, result_bytes = 1 << 20;
  static std::string calls_and_nonsense() {
    std::string all;
    for (std::uint64_t id = 1; id <= calls; ++id) {
      Bytes arguments;
      MessagePack::write(arguments, std::vector{result_bytes});
      all += bytes_of({.id = id,
                       .method = method_number<shop::sized>,
                       .body_bytes = static_cast<std::uint32_t>(arguments.size())});
      all.append(reinterpret_cast<const char*>(arguments.data()), arguments.size());
    }
    return all + nonsense;
  }
  static void expect_all_results_and_why(std::string_view text) {
    for (std::uint64_t id = 1; id <= calls + 1; ++id) {
      const auto header = header_of(text);
      ASSERT_TRUE(header) << "of " << id;
      EXPECT_EQ(header->id, id <= calls ? id : 0u);
      EXPECT_EQ(header->status, id <= calls ? 0 : static_cast<std::uint16_t>(Errc::protocol));
      ASSERT_LE(frame_header_bytes + header->body_bytes, text.size());
      text.remove_prefix(frame_header_bytes + header->body_bytes);
    }
    EXPECT_EQ(text, "");
  }

  static inline const std::string nonsense = std::string(frame_header_bytes, '?');
};

TEST_P(RudePeer, reads_why_and_then_the_end_though_it_still_sends) {
  ServerOptions options = bodies_up_to(1000);
  options.authentication.authenticate = [](const Credentials&) -> Result<Identity> {
    return fail(Errc::unauthenticated, "nobody is known here");
  };
  start(std::move(options));
  struct Row {
    const char* what;
    std::string sent;
    Errc why;
  };
  const Row rows[] = {
      {"nonsense", nonsense, Errc::protocol},
      {"too large", bytes_of({.id = 1, .body_bytes = 1001}), Errc::too_large},
      {"a stranger", bytes_of({.id = 1, .method = method_number<shop::nothing>}), Errc::unauthenticated}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    connect_peer();
    send(row.sent);
    run_until([this] { return peer.available() > 0; });
    send(std::string(100'000, '!'));
    std::error_code error;
    const std::string text = read_all(error);
    EXPECT_EQ(error, asio::error::eof) << error.message();
    const auto header = header_of(text);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->status, static_cast<std::uint16_t>(row.why));
    EXPECT_EQ(server->open(), 1u) << "it is this end's to close";
    peer.close();
    run_until([this] { return server->open() == 0; });
  }
}

TEST_P(RudePeer, reads_all_replies_and_why_though_it_ended_its_own_output) {
  start(bodies_up_to(result_bytes + 100));
  connect_peer();
  send(calls_and_nonsense());
  peer.shutdown(asio::socket_base::shutdown_send);
  std::error_code error;
  expect_all_results_and_why(read_all(error));
  EXPECT_EQ(error, asio::error::eof) << error.message();
  run_until([this] { return server->open() == 0; });
}

TEST_P(RudePeer, is_left_when_it_ended_its_own_output_and_never_reads) {
  ServerOptions options = bodies_up_to(result_bytes + 100);
  options.limits.end.linger = std::chrono::microseconds(1);  // expires at once
  start(std::move(options));
  connect_peer();
  send(calls_and_nonsense());
  peer.shutdown(asio::socket_base::shutdown_send);
  run_until([this] { return server->stats().connections == 1 && server->open() == 0; });
}

TEST_P(RudePeer, is_left_when_it_never_closes) {
  ServerOptions options;
  options.limits.end.linger = std::chrono::microseconds(1);  // expires at once
  start(std::move(options));
  send_nonsense();
  run_until([this] { return server->stats().connections == 1 && server->open() == 0; });
}

TEST_P(RudePeer, is_left_when_it_sends_without_end) {
  ServerOptions options;
  options.limits.end = {.linger = std::chrono::hours(1), .max_dropped_bytes = 50'000};
  start(std::move(options));
  send_nonsense();
  run_until([this] { return peer.available() > 0; });
  send(std::string(100'000, '!'));
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

// The kernel has connected it, and it has sent a call, before the server knew of it.
TEST_P(RudePeer, is_told_why_when_its_server_drains_before_it_was_accepted) {
  start({});
  for (int i = 0; i < 100; ++i) io.poll();  // the listener waits
  connect_peer();
  send(bytes_of({.id = 1, .method = method_number<shop::nothing>}));
  server->drain();
  std::error_code error;
  const std::string text = read_all(error);
  EXPECT_EQ(error, asio::error::eof) << error.message();
  const auto header = header_of(text);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->status, static_cast<std::uint16_t>(Errc::draining));
}

class RudeTlsPeer : public RudePeer {};

TEST_P(RudeTlsPeer, reads_all_replies_and_why_though_it_ended_its_own_output) {
  start(bodies_up_to(result_bytes + 100));
  const auto context = make_tls_context(testing_support::tls_of("client"), TlsSide::client);
  ASSERT_TRUE(context);
  const auto at = parse_address(address);
  asio::ssl::stream<asio::ip::tcp::socket> stream(io, **context);
  stream.lowest_layer().connect({asio::ip::make_address(at->host), at->port});
  std::string text;
  std::error_code error;
  run([&]() -> asio::awaitable<void> {
    co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
    const std::string all = calls_and_nonsense();
    co_await asio::async_write(stream, asio::buffer(all), asio::use_awaitable);
    stream.lowest_layer().shutdown(asio::socket_base::shutdown_send);
    co_await asio::async_read(stream, asio::dynamic_buffer(text),
                              asio::redirect_error(asio::use_awaitable, error));
  });
  expect_all_results_and_why(text);
  EXPECT_EQ(error, asio::error::eof) << error.message();
  run_until([this] { return server->open() == 0; });
}

TEST_P(RudeTlsPeer, is_told_why_when_its_server_drains_during_its_handshake) {
  start({});
  const auto context = make_tls_context(testing_support::tls_of("client"), TlsSide::client);
  ASSERT_TRUE(context);
  const auto at = parse_address(address);
  asio::ssl::stream<asio::ip::tcp::socket> stream(io, **context);
  stream.lowest_layer().connect({asio::ip::make_address(at->host), at->port});
  for (int i = 0; i < 100; ++i) io.poll();  // it is accepted
  server->drain();
  std::string text;
  std::error_code error;
  run([&]() -> asio::awaitable<void> {
    co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
    co_await asio::async_read(stream, asio::dynamic_buffer(text),
                              asio::redirect_error(asio::use_awaitable, error));
  });
  EXPECT_EQ(error, asio::error::eof) << error.message();
  const auto header = header_of(text);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->status, static_cast<std::uint16_t>(Errc::draining));
}

INSTANTIATE_TEST_SUITE_P(Over, RudeTlsPeer, testing::Values("tls"), testing_support::transport_name);
INSTANTIATE_TEST_SUITE_P(Over, RudePeer, testing::Values("tcp", "unix"), testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
