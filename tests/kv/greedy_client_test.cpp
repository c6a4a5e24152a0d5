// Clients that send and do not read, over every transport: how much the server holds for them, and what they
// get when they do read. See docs/networking-cves.md.
#include <gtest/gtest.h>

#include <asio/connect.hpp>
#include <asio/local/stream_protocol.hpp>

#include "tests/kv/certificates.hpp"
#include "tests/kv/rdma_client.hpp"

namespace weir::kv::testing {
namespace {

// Runs `io` until `done`, with a limit that only a faulty server exceeds.
template <class Done>
void run_until(asio::io_context& io, Done done) {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done()) {
    io.restart();  // it ran out of work for a moment
    io.run_one_for(std::chrono::milliseconds(1));
    if (std::chrono::steady_clock::now() > latest) throw std::runtime_error("nothing happened for 60 s");
  }
}

template <class Stream>
void shake_hands(asio::io_context& io, Stream& stream) {
  bool done = false;
  std::error_code failed;
  stream.async_handshake(asio::ssl::stream_base::client, [&](std::error_code error) {
    failed = error;
    done = true;
  });
  run_until(io, [&] { return done; });
  if (failed) throw std::system_error(failed);
}

// Connects and passes the stream to `use(io, stream)`.
template <class Use>
void connected(const std::string& transport, RunningServer& server, Use use) {
  asio::io_context io(1);
  asio::ssl::context context = client_context("");
  if (transport == "unix") {
    asio::local::stream_protocol::socket stream(io);
    stream.connect(server.path());
    return use(io, stream);
  }
  const std::uint16_t port = port_of(server, transport.c_str());
  if (transport == "tcp" || transport == "tls") {
    asio::ip::tcp::socket socket(io);
    socket.connect({asio::ip::address_v4::loopback(), port});
    if (transport == "tcp") return use(io, socket);
    asio::ssl::stream<asio::ip::tcp::socket&> stream(socket, context);
    shake_hands(io, stream);
    return use(io, stream);
  }
  rdma::Stream stream(open_engine(io));
  bool done = false;
  rdma::async_connect(stream, {asio::ip::address_v4::loopback(), port}, rdma::StreamSettings(),
                      [&](std::error_code) { done = true; });
  run_until(io, [&] { return done; });
  if (transport == "rdma") return use(io, stream);
  asio::ssl::stream<rdma::Stream&> tls(stream, context);
  shake_hands(io, tls);
  use(io, tls);
}

class GreedyClient : public ::testing::TestWithParam<const char*> {
 protected:
  static Settings all_transports() {
    Settings settings = with_certificates(rdma_settings());
    settings.tls_port = any_port;
    settings.rdma_tls_port = any_port;
    settings.tls_auth_clients = 0;
    return settings;
  }
  static Client& newest(Server& s) { return *s.clients.rbegin()->second; }
  static bool not_read_from(RunningServer& server) {
    return server.run([](Server& s) { return !s.clients.empty() && newest(s).appetite() == 0; });
  }
};

INSTANTIATE_TEST_SUITE_P(Over, GreedyClient, ::testing::Values("unix", "tcp", "tls", "rdma", "rdma+tls"),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::ranges::replace(name, '+', '_');
                           return name;
                         });

TEST_P(GreedyClient, without_the_password_holds_little_and_goes_after_ten_seconds) {
  Settings settings = all_transports();
  settings.requirepass = "secret";
  RunningServer server(settings);
  connected(GetParam(), server, [&](asio::io_context& io, auto& stream) {
    std::string pings;
    for (int i = 0; i < 1'000'000; ++i) pings += "PING\r\n";  // each is answered NOAUTH
    asio::async_write(stream, asio::buffer(pings), [](std::error_code, std::size_t) {});
    // Until the buffers on the way take no more of its replies.
    std::int64_t since_ms = 0;
    int unchanged = 0;
    run_until(io, [&] {
      const std::int64_t now_since_ms = !not_read_from(server) ? 0 : server.run([](Server& s) {
        return newest(s).traffic.over_soft_limit_since_ms;
      });
      unchanged = now_since_ms != 0 && now_since_ms == since_ms ? unchanged + 1 : 0;
      since_ms = now_since_ms;
      return unchanged == 200;
    });
    const auto [held, all] = server.run([](Server& s) {
      newest(s).charge();  // the kernel may have taken replies since the server last looked
      return std::pair(newest(s).memory(), s.strangers.bytes);
    });
    EXPECT_LT(held, 100'000u);
    EXPECT_EQ(all, held);
    const auto left_after = [&](std::int64_t ms) {
      server.advance_ms(ms);
      return server.run([](Server& s) {
        s.tick();
        return s.clients.size();
      });
    };
    // Real time has passed, too: a second or more on a busy machine.
    const std::int64_t passed_ms = server.run([&](Server& s) {
      s.refresh_time();
      return s.now_ms - since_ms;
    });
    if (passed_ms < 8'000) {
      EXPECT_EQ(left_after(9'000 - passed_ms), 1u);
    }
    EXPECT_EQ(left_after(3'000), 0u);
    EXPECT_EQ(server.run([](Server& s) { return s.strangers.bytes; }), 0u);
  });
}

TEST_P(GreedyClient, is_not_read_from_while_much_waits_for_it_and_gets_all_when_it_reads) {
  RunningServer server(all_transports());
  connected(GetParam(), server, [&](asio::io_context& io, auto& stream) {
    constexpr int count = 40'000;
    const std::string text(1'000, 'e');
    std::string requests;
    std::string replies;
    for (int i = 0; i < count; ++i) {
      requests += encode({"ECHO", text});
      replies += "$1000\r\n" + text + "\r\n";
    }
    int done = 0;
    asio::async_write(stream, asio::buffer(requests), [&](std::error_code, std::size_t) { ++done; });
    run_until(io, [&] { return not_read_from(server); });
    const auto [in, out] =
        server.run([](Server& s) { return std::pair(newest(s).input().bytes(), newest(s).output.size()); });
    EXPECT_LT(out, 9u << 20);
    EXPECT_LT(in, 9u << 20);
    EXPECT_EQ(done, 0);
    std::string got(replies.size(), 0);
    asio::async_read(stream, asio::buffer(got), [&](std::error_code, std::size_t) { ++done; });
    run_until(io, [&] { return done == 2; });
    EXPECT_TRUE(got == replies);
  });
}

// Requests of more than one turn each, with more behind them than the server takes from one client.
TEST_P(GreedyClient, with_more_than_its_turn_takes_gets_all_answers) {
  Settings settings = all_transports();
  settings.enable_debug_command = 1;
  RunningServer server(settings);
  connected(GetParam(), server, [&](asio::io_context& io, auto& stream) {
    std::string requests;
    std::string replies;
    for (int i = 0; i < 30; ++i) {
      requests += encode({"DEBUG", "SLEEP", "0.011"}) + encode({"SET", "key", std::string(1'000'000, 'v')});
      replies += "+OK\r\n+OK\r\n";
    }
    int done = 0;
    asio::async_write(stream, asio::buffer(requests), [&](std::error_code, std::size_t) { ++done; });
    std::string got(replies.size(), 0);
    asio::async_read(stream, asio::buffer(got), [&](std::error_code, std::size_t) { ++done; });
    run_until(io, [&] { return done == 2; });
    EXPECT_TRUE(got == replies);
  });
}

// CLIENT KILL ends a connection in the middle of its reads and writes, its own included (CVE-2026-56684).
TEST_P(GreedyClient, killed_while_much_waits_for_it_is_gone) {
  RunningServer server(all_transports());
  connected(GetParam(), server, [&](asio::io_context& io, auto& stream) {
    std::string requests;
    for (int i = 0; i < 20'000; ++i) requests += encode({"ECHO", std::string(1'000, 'e')});
    asio::async_write(stream, asio::buffer(requests), [](std::error_code, std::size_t) {});
    run_until(io, [&] {
      return server.run([](Server& s) { return !s.clients.empty() && newest(s).output.size() > 1u << 20; });
    });
    EXPECT_EQ(server.connect().call({"CLIENT", "KILL", "ID", "1"}), ":1\r\n");
    run_until(io, [&] { return server.run([](Server& s) { return s.clients.empty(); }); });
  });
  connected(GetParam(), server, [&](asio::io_context& io, auto& stream) {
    std::string requests = encode({"CLIENT", "KILL", "SKIPME", "no"});
    for (int i = 0; i < 1'000; ++i) requests += encode({"ECHO", std::string(1'000, 'e')});
    asio::async_write(stream, asio::buffer(requests), [](std::error_code, std::size_t) {});
    run_until(io, [&] {
      return server.run([](Server& s) { return s.stats.connections == 3 && s.clients.empty(); });
    });
  });
}

}  // namespace
}  // namespace weir::kv::testing
