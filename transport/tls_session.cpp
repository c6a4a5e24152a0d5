#include "transport/tls_session.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace weir::transport {
namespace {

constexpr std::size_t record_bytes = SSL3_RT_MAX_PLAIN_LENGTH;

// OpenSSL's own BIO for sockets raises SIGPIPE.
int send_all(BIO* bio, const char* data, std::size_t size, std::size_t* sent) {
  BIO_clear_retry_flags(bio);
  const ssize_t did = ::send(*static_cast<const int*>(BIO_get_data(bio)), data, size, MSG_NOSIGNAL);
  if (did < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  *sent = did > 0 ? static_cast<std::size_t>(did) : 0;
  return did > 0 ? 1 : 0;
}

int receive_some(BIO* bio, char* data, std::size_t size, std::size_t* got) {
  BIO_clear_retry_flags(bio);
  const ssize_t did = ::recv(*static_cast<const int*>(BIO_get_data(bio)), data, size, 0);
  if (did < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  *got = did > 0 ? static_cast<std::size_t>(did) : 0;
  return did > 0 ? 1 : 0;
}

long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* socket_method() {
  static const std::unique_ptr<BIO_METHOD, decltype(&BIO_meth_free)> method = [] {
    std::unique_ptr<BIO_METHOD, decltype(&BIO_meth_free)> made(
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "a socket without SIGPIPE"), &BIO_meth_free);
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_write_ex(made.get(), send_all);
    BIO_meth_set_read_ex(made.get(), receive_some);
    BIO_meth_set_ctrl(made.get(), control);
    return made;
  }();
  return method.get();
}

std::string reason_of(SSL* ssl) {
  const bool verifies = SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE;
  if (const long verdict = SSL_get_verify_result(ssl); verifies && verdict != X509_V_OK)
    return std::string("the certificate is not accepted: ") + X509_verify_cert_error_string(verdict);
  const unsigned long code = ERR_peek_error();
  const char* const reason = ERR_reason_error_string(code);
  return std::string("TLS: ") + (reason != nullptr ? reason : "error " + std::to_string(code));
}

}  // namespace

TlsSession::TlsSession(TlsContext context, TlsSide side, int socket, const std::string& server_name)
    : context_(std::move(context)), socket_(socket), ssl_(SSL_new(context_->native_handle()), &SSL_free) {
  BIO* const bio = ssl_ == nullptr ? nullptr : BIO_new(socket_method());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, const_cast<int*>(&socket_));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);  // which own it now
  SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_set_read_ahead(ssl_.get(), 1);
  side == TlsSide::server ? SSL_set_accept_state(ssl_.get()) : SSL_set_connect_state(ssl_.get());
  if (side == TlsSide::client && !server_name.empty()) expect_name(server_name);
}

TlsSession::~TlsSession() = default;

void TlsSession::expect_name(const std::string& name) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), name.c_str()) == 1) return;
  if (SSL_set1_host(ssl_.get(), name.c_str()) != 1) throw std::bad_alloc();
  // As SSL_set_tlsext_host_name, without its cast.
  SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
           const_cast<char*>(name.c_str()));
}

StreamStep TlsSession::step(int outcome, std::size_t bytes) {
  using Needs = StreamStep::Needs;
  if (outcome == 1) return {bytes, Needs::nothing};
  switch (SSL_get_error(ssl_.get(), outcome)) {
    case SSL_ERROR_WANT_READ:
      return {0, Needs::readable};
    case SSL_ERROR_WANT_WRITE:
      return {0, Needs::writable};
    case SSL_ERROR_SSL:
      why_ = reason_of(ssl_.get());
      break;
    default:  // the connection was closed, by an alert or without one
      break;
  }
  ERR_clear_error();
  return {0, Needs::over};
}

StreamStep TlsSession::shake_hands() {
  ERR_clear_error();
  return step(SSL_do_handshake(ssl_.get()), 0);
}

StreamStep TlsSession::read(std::span<std::byte> into) {
  ERR_clear_error();
  std::size_t bytes = 0;
  const int outcome = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
  return step(outcome, bytes);
}

StreamStep TlsSession::write(std::span<const std::span<const std::byte>> pieces) {
  std::span<const std::byte> next = pieces.front();
  if (next.size() < record_bytes && pieces.size() > 1) {
    gathered_.clear();
    for (const std::span<const std::byte> piece : pieces) {
      const auto some = piece.first(std::min(piece.size(), record_bytes - gathered_.size()));
      gathered_.insert(gathered_.end(), some.begin(), some.end());
    }
    next = gathered_;
  }
  ERR_clear_error();
  std::size_t bytes = 0;
  const int outcome = SSL_write_ex(ssl_.get(), next.data(), next.size(), &bytes);
  return step(outcome, bytes);
}

bool TlsSession::holds_input() const { return SSL_has_pending(ssl_.get()) == 1; }

bool TlsSession::is_peer_certified() const {
  return SSL_get0_peer_certificate(ssl_.get()) != nullptr &&
         SSL_get_verify_mode(ssl_.get()) != SSL_VERIFY_NONE && SSL_get_verify_result(ssl_.get()) == X509_V_OK;
}

}  // namespace weir::transport
