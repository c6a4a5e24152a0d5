// TLS over RDMA: asio::ssl::stream<rdma::Stream>, unmodified.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <asio/read.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>
#include <memory>
#include <string>
#include <vector>

#include "rdma/stream.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::StreamTest;

// Gives `context` a new key and a self-signed certificate.
void make_identity(asio::ssl::context& context) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  ASSERT_EQ(SSL_CTX_use_certificate(context.native_handle(), certificate.get()), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey(context.native_handle(), key.get()), 1);
}

TEST_F(StreamTest, carries_tls) {
  asio::ssl::context server_context(asio::ssl::context::tls_server),
      client_context(asio::ssl::context::tls_client);
  make_identity(server_context);
  auto [plain_client, plain_server] = connect_pair({.receive_buffer_bytes = 64 << 10});
  asio::ssl::stream<Stream> client(std::move(plain_client), client_context);
  asio::ssl::stream<Stream> server(std::move(plain_server), server_context);

  int handshakes = 0;
  const auto shaken = [&](std::error_code failed) {
    ASSERT_FALSE(failed) << failed.message();
    ++handshakes;
  };
  server.async_handshake(asio::ssl::stream_base::server, shaken);
  client.async_handshake(asio::ssl::stream_base::client, shaken);
  run_until([&] { return handshakes == 2; });

  std::string sent(300'000, '\0'), got(sent.size(), ' ');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 31);
  bool written = false, read = false;
  asio::async_write(client, asio::buffer(sent), [&](std::error_code failed, std::size_t) {
    ASSERT_FALSE(failed) << failed.message();
    written = true;
  });
  asio::async_read(server, asio::buffer(got), [&](std::error_code failed, std::size_t) {
    ASSERT_FALSE(failed) << failed.message();
    read = true;
  });
  run_until([&] { return written && read; });
  EXPECT_EQ(got, sent);

  std::error_code closing, closed;
  char byte = 0;
  server.async_read_some(asio::buffer(&byte, 1), [&](std::error_code e, std::size_t) { closed = e; });
  client.async_shutdown([&](std::error_code e) { closing = e; });
  run_until([&] { return static_cast<bool>(closed); });
  EXPECT_EQ(closed, asio::error::eof) << "the peer's close_notify";
}

}  // namespace
}  // namespace weir::rdma
