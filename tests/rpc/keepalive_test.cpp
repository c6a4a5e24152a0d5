// A client whose server says nothing: one that has gone, and one that is idle.
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/write.hpp>

#include "rpc/wire/hello.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

using namespace testing_support;
using namespace std::chrono_literals;

// Both ends of the idle connection run in one thread, which may stand still for a while on a busy machine.
constexpr auto idle_limit = 900ms, limit = 150ms;

ConnectionLimits within(std::chrono::milliseconds time) {
  ConnectionLimits limits;
  limits.keepalive = time;
  limits.timeout = 0us;
  return limits;
}

class Keepalive : public RpcTest {};

TEST_P(Keepalive, keeps_the_connection_to_an_idle_server) {
  serve<shop::add>();
  with_client(
      address,
      [this](Client& client) -> asio::awaitable<void> {
        const std::uint64_t before = client.stats().frames_received;
        while (client.stats().frames_received < before + 2) {  // pongs
          asio::steady_timer pause(io, 1ms);
          co_await pause.async_wait(asio::use_awaitable);
        }
        EXPECT_EQ((co_await client.call<shop::add>(2, 3)).value_or(0), 5);
      },
      within(idle_limit));
}

INSTANTIATE_TEST_SUITE_P(Over, Keepalive, testing::Values("tcp", "tls", "rdma"), transport_name);

// Says its hello, and then nothing more. Returns when the client has closed.
asio::awaitable<void> fall_silent(asio::ip::tcp::acceptor& acceptor, int& pings) {
  auto socket = co_await acceptor.async_accept(asio::use_awaitable);
  FrameHeader hello;
  hello.kind = FrameKind::settings;
  hello.id = word_of(own_hello);
  std::array<std::byte, frame_header_bytes> frame;
  encode(hello, frame.data());
  co_await asio::async_write(socket, asio::buffer(frame), asio::use_awaitable);
  for (std::error_code ended; !ended;) {
    co_await asio::async_read(socket, asio::buffer(frame), asio::redirect_error(asio::use_awaitable, ended));
    const auto header = parse_header(frame);
    if (!ended && header && header->kind == FrameKind::ping) ++pings;
  }
}

using GoneServer = Keepalive;

TEST_P(GoneServer, ends_the_connection_in_time) {
  using asio::ip::tcp;
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
  int pings = 0;
  bool left = false;
  asio::co_spawn(io, fall_silent(acceptor, pings), [&](const std::exception_ptr&) { left = true; });
  run([&]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options(within(limit));
    const std::string where = "tcp://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
    auto client = co_await connect(where, options);
    EXPECT_TRUE(client);
    if (!client) co_return;
    const auto begun = std::chrono::steady_clock::now();
    const auto never = co_await client->ping(0us);  // a call without a deadline
    EXPECT_FALSE(never);
    if (!never) {
      EXPECT_EQ(never.error().code, Errc::connection_lost) << never.error().what;
    }
    EXPECT_GE(std::chrono::steady_clock::now() - begun, limit / 3);
    EXPECT_FALSE(client->is_open());
  });
  run_until([&] { return left; });
  EXPECT_GE(pings, 2);  // the caller's, and the client's own
}

INSTANTIATE_TEST_SUITE_P(Over, GoneServer, testing::Values("tcp"), transport_name);

}  // namespace
}  // namespace weir::rpc
