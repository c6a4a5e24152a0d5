// Timers that expire in the same turn in which the thing they watch ends: their handlers run after that end,
// and must not touch it. To force that, time passes while the io_context does not run.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <asio/ip/tcp.hpp>
#include <asio/ssl.hpp>
#include <asio/steady_timer.hpp>

#include "rpc/transport/tls_transport.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

using std::chrono::milliseconds;

class LateTimers : public testing_support::RpcTest {
 protected:
  static void let_time_pass(milliseconds much) {
    const auto until = std::chrono::steady_clock::now() + much;
    while (std::chrono::steady_clock::now() < until) {
    }
  }
};

// A connection over loopback is established as soon as it is requested.
TEST_P(LateTimers, a_connection_that_is_made_as_its_time_runs_out_is_whole) {
  serve<shop::add>();
  for (int i = 0; i < 20; ++i) {
    ConnectOptions options = connect_options();
    options.connect_timeout = milliseconds(0);
    run([&]() -> asio::awaitable<void> {
      auto client = co_await connect(address, options);
      for (int turn = 0; turn < 3; ++turn)
        co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
      if (client) {
        const auto sum = co_await client->call<shop::add>(2, 3);
        EXPECT_EQ(sum.value_or(0), 5);
      } else {
        EXPECT_EQ(client.error().code, Errc::unreachable) << client.error().what;
      }
    });
  }
}

// The last step of a TLS 1.2 client's handshake is a read, so it completes in the turn in which the data
// arrive.
TEST_P(LateTimers, a_handshake_that_ends_as_its_time_runs_out_is_whole) {
  auto old = make_tls_context(testing_support::tls_of("server"), TlsSide::server);
  ASSERT_TRUE(old);
  SSL_CTX_set_max_proto_version((*old)->native_handle(), TLS1_2_VERSION);
  const auto context = make_tls_context(testing_support::tls_of("client"), TlsSide::client);
  ASSERT_TRUE(context);
  asio::io_context there(1);
  asio::ip::tcp::acceptor acceptor(there, {asio::ip::address_v4::loopback(), 0});
  asio::ip::tcp::socket socket(io);
  socket.connect(acceptor.local_endpoint());
  asio::ssl::stream<asio::ip::tcp::socket> peer(acceptor.accept(), **old);
  bool shaken = false, ended = false;
  peer.async_handshake(asio::ssl::stream_base::server,
                       [&](const std::error_code& error) { shaken = !error; });
  constexpr milliseconds limit(50);
  Result<TransportPtr> made;
  const auto begun = std::chrono::steady_clock::now();
  asio::co_spawn(io,
                 make_tls_transport(std::move(socket), TlsPeer{TlsSide::client, *context, "", limit}, "peer"),
                 [&](const std::exception_ptr&, Result<TransportPtr> result) {
                   made = std::move(result);
                   ended = true;
                 });
  while (!shaken && !ended) {
    io.poll();
    const bool in_time = std::chrono::steady_clock::now() < begun + limit / 2;
    there.poll();
    if (shaken && in_time) let_time_pass(limit);  // the peer's last bytes and the timer are both ready now
  }
  run_until([&] { return ended; });
  for (int turn = 0; turn < 3; ++turn) io.poll();
  if (made) (*made)->close();
}

// Without descriptors a listener pauses; its server is destroyed in the turn in which it would resume.
TEST_P(LateTimers, a_listener_that_goes_as_its_rest_ends_does_not_go_on) {
  serve<shop::add>();
  asio::ip::tcp::socket peer(io);
  const auto at = parse_address(address);
  peer.open(asio::ip::tcp::v4());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none_left = before;
  none_left.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  asio::steady_timer end(io, milliseconds(100));
  end.async_wait([this](const std::error_code&) { server.reset(); });
  peer.connect({asio::ip::make_address(at->host), at->port});
  for (int turn = 0; turn < 5; ++turn) io.poll();
  let_time_pass(milliseconds(250));
  io.poll();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(server, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Over, LateTimers, testing::Values("tcp"), testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
