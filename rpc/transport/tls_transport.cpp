#include "rpc/transport/tls_transport.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/ssl.hpp>
#include <asio/use_awaitable.hpp>
#include <cstring>

#include "rpc/transport/stream_transport.hpp"
#include "rpc/transport/time_limit.hpp"
#include "transport/handshake_progress.hpp"

namespace weir::rpc {

bool is_refusal(const std::error_code& error) {
  constexpr int alerts[] = {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,     SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
                            SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
                            SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, SSL_R_TLSV1_ALERT_UNKNOWN_CA,
                            SSL_R_TLSV1_ALERT_ACCESS_DENIED,       SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED};
  return error.category() == asio::error::get_ssl_category() &&
         std::ranges::find(alerts, ERR_GET_REASON(static_cast<unsigned long>(error.value()))) !=
             std::end(alerts);
}

namespace {

std::string name_in_certificate(SSL* ssl) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl), &X509_free);
  if (!certificate) return {};
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), &BIO_free);
  X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate.get()), 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

// Until the handshake is over, another client may need its place. `end` is called only while it exists.
transport::Newcomers::Leave leave_by(const asio::any_io_executor& executor,
                                     const std::shared_ptr<std::function<void()>>& end) {
  return [weak = std::weak_ptr(end), executor](transport::Newcomers::Lack) {
    const auto work = [weak] {
      if (const auto ends = weak.lock()) (*ends)();
    };
    const auto* const io = executor.target<asio::io_context::executor_type>();
    if (io != nullptr && io->running_in_this_thread()) return work(), transport::Newcomers::Room::now;
    return asio::post(executor, work), transport::Newcomers::Room::soon;
  };
}

template <class Layer>
asio::awaitable<Result<TransportPtr>> shake_hands(Layer below, TlsPeer tls, std::string peer) {
  using Stream = asio::ssl::stream<Layer>;
  Stream stream(std::move(below), *tls.context);
  if (!tls.server_name.empty()) {
    stream.set_verify_callback(asio::ssl::host_name_verification(tls.server_name));
    // As SSL_set_tlsext_host_name, without its cast.
    SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             tls.server_name.data());
  }
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const auto close = std::make_shared<std::function<void()>>([&stream] {
    std::error_code ignored;
    stream.lowest_layer().close(ignored);
  });
  const TimeLimit limit(executor, tls.timeout, *close);
  const auto place = tls.place ? tls.place : std::make_shared<transport::HandshakePlaces::Place>();
  place->may_leave(tls.from, leave_by(executor, close));
  const auto side =
      tls.side == TlsSide::server ? asio::ssl::stream_base::server : asio::ssl::stream_base::client;
  std::string why;
  try {
    const transport::HandshakeProgress progress(stream.native_handle(), *place);
    co_await stream.async_handshake(side, asio::use_awaitable);
  } catch (const std::system_error& error) {
    why = limit.passed() ? "no handshake within " + std::to_string(tls.timeout.count()) + " ms"
                         : error.code().message();
  }
  place->give_back();
  if (!why.empty() || limit.passed())
    co_return fail(Errc::tls, peer + ": the TLS handshake failed: " + why +
                                  "; check the certificates of both ends, and that both speak TLS");
  std::string certificate = name_in_certificate(stream.native_handle());
  TransportPtr made =
      std::make_shared<StreamTransport<Stream>>(std::move(stream), std::move(peer), std::move(certificate));
  co_return made;
}

}  // namespace

Result<transport::TlsContext> make_tls_context(const TlsOptions& options, TlsSide side) {
  const bool server = side == TlsSide::server;
  if (server && (options.certificate_file.empty() || options.key_file.empty()))
    return fail(Errc::tls, "a TLS server needs a certificate and a key: set certificate_file and key_file");
  const bool ask = server ? !options.authority_file.empty() : options.check_certificate;
  const transport::TlsFiles files{
      .certificate = options.certificate_file,
      .key = options.key_file,
      .authorities = options.authority_file,
      .system_authorities = !server,
      .peer = ask ? transport::PeerCertificate::required : transport::PeerCertificate::ignored};
  auto made = transport::make_tls_context(side, files);
  if (!made) return fail(Errc::tls, "'" + made.error().value + "' cannot be used: " + made.error().reason);
  return std::move(*made);
}

asio::awaitable<Result<TransportPtr>> make_tls_transport(asio::ip::tcp::socket socket, TlsPeer tls,
                                                         std::string peer) {
  return shake_hands(std::move(socket), std::move(tls), std::move(peer));
}

asio::awaitable<Result<TransportPtr>> make_tls_transport(rdma::Stream stream, TlsPeer tls, std::string peer) {
  return shake_hands(std::move(stream), std::move(tls), std::move(peer));
}

}  // namespace weir::rpc
