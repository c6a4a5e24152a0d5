// Clients that send their requests, end their side of the connection, and then read: they get every answer,
// and the connection ends behind the last one. RDMA alone has no such end of one side.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "tests/kv/certificates.hpp"
#include "tests/kv/rdma_client.hpp"

namespace weir::kv::testing {
namespace {

// TLS over any of Asio's streams, a step at a time: Asio's own stream cannot read on after its close_notify.
template <class Stream>
class TlsByHand {
 public:
  TlsByHand(asio::io_context& io, Stream& stream, asio::ssl::context& context)
      : io_(io), stream_(stream), ssl_(::SSL_new(context.native_handle()), ::SSL_free) {
    ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
    ::SSL_set_connect_state(ssl_.get());
    while (::SSL_do_handshake(ssl_.get()) != 1) {
      send_gathered();
      if (!receive()) throw std::runtime_error("the connection ended during the handshake");
    }
  }
  void write(std::string_view bytes) {
    std::size_t written = 0;
    if (::SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) != 1 || written != bytes.size())
      throw std::runtime_error("SSL_write");
    send_gathered();
  }
  // close_notify; reading goes on.
  void end_sending() {
    ::SSL_shutdown(ssl_.get());
    send_gathered();
  }
  std::string until_closed() {
    std::string all;
    for (;;) {
      char bytes[16384];
      std::size_t size = 0;
      while (::SSL_read_ex(ssl_.get(), bytes, sizeof bytes, &size) == 1) all.append(bytes, size);
      if (was_notified() || !receive()) return all;
    }
  }
  // The server's close_notify has come.
  bool was_notified() const { return (::SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }

 private:
  void run_until(const bool& done) {
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(10));
      if (std::chrono::steady_clock::now() > latest) throw std::runtime_error("nothing happened for 60 s");
    }
  }
  void send_gathered() {
    std::string bytes(::BIO_ctrl_pending(::SSL_get_wbio(ssl_.get())), 0);
    if (bytes.empty()) return;
    ::BIO_read(::SSL_get_wbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    bool done = false;
    asio::async_write(stream_, asio::buffer(bytes), [&](std::error_code, std::size_t) { done = true; });
    run_until(done);
  }
  // Returns false once the stream has ended.
  bool receive() {
    char bytes[16384];
    bool done = false;
    std::size_t size = 0;
    stream_.async_read_some(asio::buffer(bytes), [&](std::error_code, std::size_t got) {
      size = got;
      done = true;
    });
    run_until(done);
    if (size > 0) ::BIO_write(::SSL_get_rbio(ssl_.get()), bytes, static_cast<int>(size));
    return size > 0;
  }

  asio::io_context& io_;
  Stream& stream_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

// More than fits the buffers on the way and the server's own for one client.
struct Pipeline {
  explicit Pipeline(int count) {
    const std::string text(1'000, 'e');
    for (int i = 0; i < count; ++i) {
      requests += encode({"ECHO", text + std::to_string(i)});
      replies += "$" + std::to_string(text.size() + std::to_string(i).size()) + "\r\n" + text +
                 std::to_string(i) + "\r\n";
    }
  }
  std::string requests, replies;
};

Settings all_ports() {
  Settings settings = with_certificates(rdma_settings());
  settings.tls_port = any_port;
  settings.rdma_tls_port = any_port;
  settings.tls_auth_clients = 0;
  return settings;
}

class HalfClosed : public ::testing::TestWithParam<int> {
 protected:
  RunningServer server{all_ports()};
  const Pipeline pipeline{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(After, HalfClosed, ::testing::Values(1, 12'000),
                         [](const auto& row) { return std::to_string(row.param) + "_requests"; });

TEST_P(HalfClosed, gets_every_answer_over_sockets) {
  const std::uint16_t port = port_of(server, "tcp");
  for (const bool tcp : {false, true}) {
    WireClient client = tcp ? WireClient::tcp(port) : server.connect();
    client.send(pipeline.requests);
    client.end_sending();
    EXPECT_TRUE(client.until_closed() == pipeline.replies) << (tcp ? "tcp" : "unix");
  }
  await_clients(server, 0);
}

rdma::Stream over_rdma(asio::io_context& io, RunningServer& server) {
  rdma::Stream stream(open_engine(io));
  bool done = false;
  rdma::async_connect(stream, {asio::ip::address_v4::loopback(), port_of(server, "rdma+tls")},
                      rdma::StreamSettings(), [&](std::error_code) { done = true; });
  while (!done) {
    io.restart();
    io.run_one();
  }
  return stream;
}

template <class Stream>
void expect_every_answer(asio::io_context& io, Stream& stream, const Pipeline& pipeline) {
  asio::ssl::context context = client_context("");
  TlsByHand client(io, stream, context);
  client.write(pipeline.requests);
  client.end_sending();
  EXPECT_TRUE(client.until_closed() == pipeline.replies);
}

TEST_P(HalfClosed, gets_every_answer_after_close_notify) {
  asio::io_context io(1);
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), port_of(server, "tls")});
  expect_every_answer(io, socket, pipeline);
  await_clients(server, 0);
}

TEST_P(HalfClosed, gets_every_answer_after_the_end_of_tcp_without_close_notify) {
  asio::io_context io(1);
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), port_of(server, "tls")});
  asio::ssl::context context = client_context("");
  TlsByHand client(io, socket, context);
  client.write(pipeline.requests);
  socket.shutdown(asio::ip::tcp::socket::shutdown_send);
  EXPECT_TRUE(client.until_closed() == pipeline.replies);
  await_clients(server, 0);
}

TEST_P(HalfClosed, gets_every_answer_after_close_notify_over_rdma) {
  asio::io_context io(1);
  rdma::Stream stream = over_rdma(io, server);
  expect_every_answer(io, stream, pipeline);
  await_clients(server, 0);
}

// A client must be able to tell the end from one that somebody else made.
template <class Stream>
void expect_close_notify(asio::io_context& io, Stream& stream) {
  asio::ssl::context context = client_context("");
  TlsByHand client(io, stream, context);
  client.write(encode({"QUIT"}));
  EXPECT_EQ(client.until_closed(), "+OK\r\n");
  EXPECT_TRUE(client.was_notified());
}

TEST(TlsClient, that_is_closed_gets_close_notify) {
  RunningServer server{all_ports()};
  asio::io_context io(1);
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), port_of(server, "tls")});
  expect_close_notify(io, socket);
  await_clients(server, 0);
}

TEST(TlsClient, that_is_closed_gets_close_notify_over_rdma) {
  RunningServer server{all_ports()};
  asio::io_context io(1);
  rdma::Stream stream = over_rdma(io, server);
  expect_close_notify(io, stream);
  await_clients(server, 0);
}

// It may wait for ever, and holds a place in a queue that others want.
TEST(HalfClosedClient, that_waits_for_an_element_is_closed) {
  RunningServer server;
  WireClient client = server.connect();
  client.send(encode({"PING"}) + encode({"BLPOP", "list", "0"}));
  EXPECT_EQ(client.reply(), "+PONG\r\n");
  client.end_sending();
  EXPECT_EQ(client.until_closed(), "");
  EXPECT_EQ(server.connect().call({"RPUSH", "list", "x"}), ":1\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
