// What a call through a pool waits for before it is sent: names to be resolved, connections to be made. All
// of it counts against the call's timeout, and none of it lasts forever.
#include <gtest/gtest.h>

#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <stdexcept>

#include "rpc/pool.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

using std::chrono::milliseconds;

asio::awaitable<void> for_ever() {
  asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await timer.async_wait(asio::use_awaitable);
}

class SilentResolver final : public Resolver {
 public:
  asio::awaitable<Result<std::vector<std::string>>> resolve() override {
    co_await for_ever();
    co_return std::vector<std::string>();
  }
  asio::awaitable<void> changed() override { return for_ever(); }
};

// Throws on its first use.
class MoodyResolver final : public Resolver {
 public:
  explicit MoodyResolver(std::string address) : address_(std::move(address)) {}
  asio::awaitable<Result<std::vector<std::string>>> resolve() override {
    if (++asked_ == 1) throw std::runtime_error("no such service yet");
    co_return std::vector{address_};
  }
  asio::awaitable<void> changed() override {
    if (asked_ == 1) throw std::runtime_error("nobody to ask");
    co_await for_ever();
  }

 private:
  const std::string address_;
  int asked_ = 0;
};

class PoolWaits : public testing_support::RpcTest {
 protected:
  PoolOptions options() const {
    PoolOptions chosen;
    chosen.connect = connect_options();
    chosen.connect.connect_timeout = std::chrono::hours(1);
    chosen.retry.first_wait = milliseconds(1);
    return chosen;
  }
  Result<std::int32_t> add_through(std::unique_ptr<Resolver> resolver, PoolOptions chosen,
                                   std::chrono::microseconds timeout) {
    Pool pool(io, std::move(resolver), std::move(chosen));
    Result<std::int32_t> sum;
    run([&]() -> asio::awaitable<void> {
      CallOptions call;
      call.timeout = timeout;
      sum = co_await pool.call<shop::add>(call, 2, 3);
    });
    return sum;
  }
};

TEST_P(PoolWaits, a_call_ends_at_its_deadline_while_the_servers_are_looked_up) {
  const auto sum = add_through(std::make_unique<SilentResolver>(), options(), milliseconds(20));
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code, Errc::deadline_exceeded) << sum.error().what;
}

// The server accepts and sends nothing, so the handshake never ends.
TEST_P(PoolWaits, a_call_ends_at_its_deadline_while_its_server_is_connected_to) {
  asio::ip::tcp::acceptor silent(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const std::string at = "tls://127.0.0.1:" + std::to_string(silent.local_endpoint().port());
  const auto sum = add_through(static_list({at}), options(), milliseconds(20));
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code, Errc::deadline_exceeded) << sum.error().what;
}

TEST_P(PoolWaits, a_time_out_beyond_the_end_of_time_is_for_ever) {
  serve<shop::add>();
  for (const auto timeout : {std::chrono::microseconds::max(), std::chrono::microseconds(1ll << 60)})
    EXPECT_EQ(add_through(static_list({address}), options(), timeout).value_or(0), 5);
}

TEST_P(PoolWaits, a_token_that_could_not_be_had_once_is_asked_for_again) {
  serve<shop::add>();
  PoolOptions chosen = options();
  int asked = 0;
  chosen.connect.token = [&]() -> std::string {
    if (++asked == 1) throw std::runtime_error("no such file");
    return "token";
  };
  Pool pool(io, static_list({address}), chosen);
  Result<std::int32_t> first, second;
  run([&]() -> asio::awaitable<void> {
    first = co_await pool.call<shop::add>(2, 3);
    second = co_await pool.call<shop::add>(2, 3);
  });
  ASSERT_FALSE(first);
  EXPECT_NE(first.error().what.find("no such file"), std::string::npos) << first.error().what;
  EXPECT_EQ(second.value_or(0), 5);
  EXPECT_EQ(asked, 2);
}

TEST_P(PoolWaits, a_resolver_that_throws_is_asked_again) {
  serve<shop::add>();
  PoolOptions chosen = options();
  chosen.retry.attempts = 1;
  chosen.resolve_pause = milliseconds(1);
  Pool pool(io, std::make_unique<MoodyResolver>(address), chosen);
  run([&]() -> asio::awaitable<void> {
    CallOptions call;
    call.timeout = std::chrono::seconds(5);
    Result<std::int32_t> sum = co_await pool.call<shop::add>(call, 2, 3);
    EXPECT_FALSE(sum);
    EXPECT_NE(sum.error().what.find("no such service yet"), std::string::npos) << sum.error().what;
    while (!sum && sum.error().code == Errc::unreachable) {
      co_await asio::post(io, asio::use_awaitable);
      sum = co_await pool.call<shop::add>(call, 2, 3);
    }
    EXPECT_EQ(sum.value_or(0), 5);
  });
}

// Accepts connections, reads slowly, and answers the first connection's request when all of it has arrived.
// From its first byte on it answers no ping.
class SlowPeer {
 public:
  static constexpr std::size_t piece_bytes = 128 << 10;

  SlowPeer(asio::io_context& io, milliseconds pause)
      : acceptor_(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)), pause_(pause) {
    asio::co_spawn(io, serve_all(), [](const std::exception_ptr&) {});
  }
  std::string address() const {
    return "tcp://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  asio::awaitable<void> serve_all() {
    for (;;) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      asio::co_spawn(acceptor_.get_executor(), serve(std::move(socket)), [](const std::exception_ptr&) {});
    }
  }
  asio::awaitable<void> serve(asio::ip::tcp::socket socket) {
    std::array<std::byte, frame_header_bytes> head;
    co_await asio::async_read(socket, asio::buffer(head), asio::use_awaitable);
    FrameHeader hello;
    hello.kind = FrameKind::settings;
    encode(hello, head.data());
    co_await asio::async_write(socket, asio::buffer(head), asio::use_awaitable);
    FrameHeader request;
    for (;;) {
      co_await asio::async_read(socket, asio::buffer(head), asio::use_awaitable);
      request = parse_header(head).value();
      if (request.kind != FrameKind::ping) break;
      request.kind = FrameKind::pong;
      encode(request, head.data());
      co_await asio::async_write(socket, asio::buffer(head), asio::use_awaitable);
    }
    asio::steady_timer timer(socket.get_executor());
    std::vector<std::byte> piece(piece_bytes);
    for (std::size_t left = request.body_bytes + request.attachment_bytes; left > 0;) {
      timer.expires_after(pause_);
      co_await timer.async_wait(asio::use_awaitable);
      const auto part = asio::buffer(piece, left);
      left -= co_await socket.async_read_some(part, asio::use_awaitable);
    }
    FrameHeader reply;
    reply.kind = FrameKind::reply;
    reply.id = request.id;
    reply.body_bytes = 1;
    std::array<std::byte, frame_header_bytes + 1> answer;
    encode(reply, answer.data());
    answer.back() = std::byte{5};  // MessagePack
    co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
    for (;;) co_await socket.async_read_some(asio::buffer(piece), asio::use_awaitable);
  }

  asio::ip::tcp::acceptor acceptor_;
  const milliseconds pause_;
};

// A ping is queued behind the data that wait to be sent.
TEST_P(PoolWaits, a_server_that_is_busy_taking_large_arguments_is_not_taken_for_dead) {
  SlowPeer peer(io, milliseconds(1));
  PoolOptions chosen = options();
  chosen.check_every = milliseconds(10);
  chosen.check_timeout = milliseconds(150);
  constexpr std::size_t pieces = 4 * 150;  // each takes at least a millisecond
  const std::vector<std::byte> large(pieces * SlowPeer::piece_bytes);
  Pool pool(io, static_list({peer.address()}), chosen);
  run([&]() -> asio::awaitable<void> {
    CallOptions call;
    call.attachment = large;
    const auto sum = co_await pool.call<shop::add>(call, 2, 3);
    EXPECT_EQ(sum.value_or(0), 5) << (sum ? "" : sum.error().what);
  });
}

TEST_P(PoolWaits, a_server_that_says_nothing_is_taken_for_dead_though_its_socket_takes_calls) {
  SlowPeer peer(io, std::chrono::hours(1));
  PoolOptions chosen = options();
  chosen.check_every = chosen.check_timeout = milliseconds(10);
  Pool pool(io, static_list({peer.address()}), chosen);
  run([&]() -> asio::awaitable<void> {
    const auto sum = co_await pool.call<shop::add>(2, 3);
    EXPECT_FALSE(sum);
    EXPECT_EQ(sum.error().code, Errc::connection_lost);
    const std::string why = peer.address() + " did not answer a ping in 10 ms: its connection was closed";
    // If this process got no processor for 10 ms, the first ping failed before the call had left, and the
    // call was made again.
    EXPECT_TRUE(sum.error().what.starts_with(why)) << sum.error().what;
    EXPECT_EQ(pool.servers().at(0).last_error, why);
  });
}

// Like a stopped program: the kernel accepts its connections.
TEST_P(PoolWaits, a_server_that_hangs_gets_no_calls_though_it_can_be_connected_to) {
  constexpr std::uint32_t enough = 4;
  serve<shop::add>();
  const asio::ip::tcp::acceptor hung(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const std::string at = "tcp://127.0.0.1:" + std::to_string(hung.local_endpoint().port());
  PoolOptions chosen = options();
  chosen.check_every = milliseconds(1);
  chosen.check_timeout = milliseconds(100);
  Pool pool(io, static_list({at, address}), chosen);
  run([&]() -> asio::awaitable<void> {
    CallOptions twice;
    twice.idempotent = true;
    EXPECT_EQ((co_await pool.call<shop::add>(twice, 2, 3)).value_or(0), 5);
    EXPECT_EQ(pool.servers().at(0).calls, 0u);
    // It repeatedly fails to send a hello, which no call notices.
    for (std::uint32_t failures = 1; failures < enough; failures = pool.servers().at(0).failures) {
      const auto sum = co_await pool.call<shop::add>(2, 3);
      EXPECT_EQ(sum.value_or(0), 5) << (sum ? "" : sum.error().what);
      if (!sum) break;
    }
    EXPECT_EQ(pool.servers().at(0).calls, 0u);
  });
}

TEST_P(PoolWaits, a_server_that_failed_is_called_again_once_it_has_answered) {
  serve<shop::add>();
  const std::string at = "unix://" + folder.file("comes-back");
  auto comes_back = make_server();
  comes_back->add<shop::add>();
  ASSERT_TRUE(comes_back->listen(at));
  Pool pool(io, static_list({address, at}), options());
  run([&]() -> asio::awaitable<void> {
    CallOptions twice;
    twice.idempotent = true;
    const auto add = [&]() -> asio::awaitable<void> {
      EXPECT_EQ((co_await pool.call<shop::add>(twice, 2, 3)).value_or(0), 5);
    };
    do {
      co_await add();
    } while (pool.servers().at(1).calls == 0);
    comes_back->stop();
    while (pool.servers().at(1).failures == 0) co_await add();
    const std::uint64_t calls = pool.servers().at(1).calls;
    comes_back = make_server();
    comes_back->add<shop::add>();
    EXPECT_TRUE(comes_back->listen(at));
    while (pool.servers().at(1).failures > 0) co_await add();
    EXPECT_EQ(pool.servers().at(1).calls, calls);
    while (pool.servers().at(1).calls == calls) co_await add();
  });
}

// One of two simultaneous calls is assigned to a server whose connection is never made.
TEST_P(PoolWaits, no_call_waits_for_a_connection_while_there_is_another) {
  serve<shop::add>();
  asio::ip::tcp::acceptor silent(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const std::string at = "tls://127.0.0.1:" + std::to_string(silent.local_endpoint().port());
  for (const auto& servers : {std::vector{at, address}, std::vector{address, at}}) {
    Pool pool(io, static_list(servers), options());
    int good = 0, ended = 0;
    const auto count = [&](const std::exception_ptr&, const Result<std::int32_t>& sum) {
      good += sum.value_or(0) == 5 ? 1 : 0;
      ++ended;
    };
    for (int i = 0; i < 2; ++i) asio::co_spawn(io, pool.call<shop::add>(2, 3), count);
    run_until([&] { return ended == 2; });
    for (int i = 0; i < 4; ++i) asio::co_spawn(io, pool.call<shop::add>(2, 3), count);
    run_until([&] { return ended == 6; });
    EXPECT_EQ(good, 6);
  }
}

INSTANTIATE_TEST_SUITE_P(Over, PoolWaits, testing::Values("tcp"), testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
