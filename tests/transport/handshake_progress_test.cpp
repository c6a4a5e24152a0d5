// Which bytes of a client count as progress of its TLS handshake. Client and server talk through memory.
#include "transport/handshake_progress.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/certificates.hpp"
#include "transport/tls_context.hpp"

namespace weir::transport {
namespace {

using Lack = Newcomers::Lack;

struct End {
  End(TlsSide side, const TlsFiles& files)
      : context(*make_tls_context(side, files)), ssl(SSL_new(context->native_handle()), SSL_free) {
    SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    side == TlsSide::server ? SSL_set_accept_state(ssl.get()) : SSL_set_connect_state(ssl.get());
  }
  bool go_on() const { return SSL_do_handshake(ssl.get()) == 1; }
  void take(std::string_view bytes) const {
    BIO_write(SSL_get_rbio(ssl.get()), bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string sent() const {
    std::string bytes(64 << 10, 0);
    const int count = BIO_read(SSL_get_wbio(ssl.get()), bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }

  TlsContext context;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl;
};

// The handshake's place is the oldest of two: it leaves first unless it has moved on.
struct HandshakeProgressTest : testing::Test {
  HandshakeProgressTest() {
    place.may_leave("10.0.0.1", [this](Lack) { return left = 1, Newcomers::Room::now; });
    other.may_leave("10.0.0.1", [this](Lack) { return left = 2, Newcomers::Room::now; });
  }
  bool has_moved_on() {
    places->handshakes()->make_room(Lack::place);
    return left == 2;
  }
  std::string hello() const {
    client.go_on();
    return client.sent();
  }

  const test::Certificates& all = test::certificates();
  End server{
      TlsSide::server,
      {.certificate = all.certificate("server"), .key = all.key("server"), .peer = PeerCertificate::ignored}};
  End client{TlsSide::client, {.peer = PeerCertificate::ignored}};
  const std::shared_ptr<HandshakePlaces> places = std::make_shared<HandshakePlaces>();
  HandshakePlaces::Place place = places->take(), other = places->take();
  HandshakeProgress progress{server.ssl.get(), place};
  int left = 0;
};

TEST_F(HandshakeProgressTest, is_a_whole_hello) {
  server.take(hello());
  EXPECT_FALSE(server.go_on());
  EXPECT_TRUE(has_moved_on());
}

TEST_F(HandshakeProgressTest, is_not_a_hello_that_lacks_its_last_byte) {
  std::string bytes = hello();
  bytes.pop_back();
  for (const char byte : bytes) {
    server.take({&byte, 1});
    EXPECT_FALSE(server.go_on());
  }
  EXPECT_FALSE(has_moved_on());
}

TEST_F(HandshakeProgressTest, is_not_an_alert) {
  server.take({"\x15\x03\x01\x00\x02\x01\x5a", 7});  // a warning, which OpenSSL ignores
  EXPECT_FALSE(server.go_on());
  EXPECT_FALSE(has_moved_on());
}

// Two messages of the client in TLS 1.3: between them others may have come.
TEST_F(HandshakeProgressTest, is_every_message_until_it_is_over) {
  server.take(hello());
  EXPECT_FALSE(server.go_on());
  other.move_on();
  client.take(server.sent());
  client.go_on();
  server.take(client.sent());
  EXPECT_TRUE(server.go_on());
  EXPECT_TRUE(has_moved_on());
}

}  // namespace
}  // namespace weir::transport
