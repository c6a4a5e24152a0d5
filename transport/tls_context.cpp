#include "transport/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <asio/ssl.hpp>
#include <system_error>

namespace weir::transport {

namespace {

using Context = asio::ssl::context;
using Part = TlsFault::Part;
using Fault = std::expected<void, TlsFault>;

Fault outcome(Part part, const std::string& value, const std::error_code& error) {
  if (!error) return {};
  return std::unexpected(TlsFault{part, value, error.message()});
}

// What a function of OpenSSL's own that failed left behind.
std::error_code last_error() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  return {static_cast<int>(code), asio::error::get_ssl_category()};
}

Fault identify(Context& context, const TlsFiles& files) {
  if (!files.asks_for_password || !files.key_password.empty())
    context.set_password_callback(
        [password = files.key_password](std::size_t, Context::password_purpose) { return password; });
  std::error_code error;
  if (!files.certificate.empty()) context.use_certificate_chain_file(files.certificate, error);
  if (error) return outcome(Part::certificate, files.certificate, error);
  if (!files.key.empty()) context.use_private_key_file(files.key, Context::pem, error);
  return outcome(Part::key, files.key, error);
}

Fault trust(Context& context, const TlsFiles& files) {
  std::error_code error;
  if (!files.authorities.empty()) context.load_verify_file(files.authorities, error);
  if (error) return outcome(Part::authorities, files.authorities, error);
  if (!files.authorities_directory.empty()) context.add_verify_path(files.authorities_directory, error);
  if (error) return outcome(Part::authorities_directory, files.authorities_directory, error);
  const bool named = !files.authorities.empty() || !files.authorities_directory.empty();
  if (!named && files.system_authorities) context.set_default_verify_paths(error);
  return outcome(Part::authorities, "the system's", error);
}

Fault choose_ciphers(Context& context, const TlsFiles& files) {
  SSL_CTX* const native = context.native_handle();
  if (!files.ciphers.empty() && ::SSL_CTX_set_cipher_list(native, files.ciphers.c_str()) != 1)
    return outcome(Part::ciphers, files.ciphers, last_error());
  if (!files.ciphersuites.empty() && ::SSL_CTX_set_ciphersuites(native, files.ciphersuites.c_str()) != 1)
    return outcome(Part::ciphersuites, files.ciphersuites, last_error());
  return {};
}

asio::ssl::verify_mode verify_mode(PeerCertificate peer) {
  switch (peer) {
    case PeerCertificate::ignored:
      return asio::ssl::verify_none;
    case PeerCertificate::optional:
      return asio::ssl::verify_peer;
    case PeerCertificate::required:
      break;
  }
  return asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert;
}

}  // namespace

std::expected<TlsContext, TlsFault> make_tls_context(TlsSide side, const TlsFiles& files) {
  auto context =
      std::make_shared<Context>(side == TlsSide::server ? Context::tls_server : Context::tls_client);
  ::SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  if (side == TlsSide::server) ::SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  for (const auto step : {identify, trust, choose_ciphers})
    if (auto done = step(*context, files); !done) return std::unexpected(std::move(done.error()));
  context->set_verify_mode(verify_mode(files.peer));
  return context;
}

}  // namespace weir::transport
