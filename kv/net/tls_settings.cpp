#include "kv/net/tls_settings.hpp"

#include <asio/ssl.hpp>

namespace weir::kv {

Opened<std::shared_ptr<TlsSettings>> TlsSettings::load(const TlsFiles& files) {
  auto failed = [](const std::string& what, const std::string& file, const asio::error_code& error) {
    return std::unexpected("Could not set up TLS: " + what + " '" + file + "': " + error.message() +
                           ". Check the --tls-... options.");
  };
  if (files.certificate.empty() || files.key.empty()) {
    return std::unexpected(
        "Could not set up TLS: give the server's certificate (--tls-cert-file) and its key "
        "(--tls-key-file).");
  }
  const bool verifies = files.clients != ClientCertificates::ignored;
  if (verifies && files.authorities.empty() && files.authorities_directory.empty()) {
    return std::unexpected(
        "Could not set up TLS: clients are asked for certificates, but nothing says who may sign "
        "them. Give --tls-ca-cert-file or --tls-ca-cert-dir, or --tls-auth-clients no.");
  }
  auto settings = std::make_shared<TlsSettings>();
  asio::ssl::context& context = settings->context_;
  asio::error_code error;
  using Options = asio::ssl::context;
  context.set_options(Options::default_workarounds | Options::no_sslv2 | Options::no_sslv3 |
                      Options::no_tlsv1 | Options::no_tlsv1_1);
  context.set_password_callback(
      [password = files.key_password](std::size_t, Options::password_purpose) { return password; });
  context.use_certificate_chain_file(files.certificate, error);
  if (error) return failed("the certificate file", files.certificate, error);
  context.use_private_key_file(files.key, Options::pem, error);
  if (error) return failed("the key file", files.key, error);
  if (!files.authorities.empty()) {
    context.load_verify_file(files.authorities, error);
    if (error) return failed("the authorities file", files.authorities, error);
  }
  if (!files.authorities_directory.empty()) {
    context.add_verify_path(files.authorities_directory, error);
    if (error) return failed("the authorities directory", files.authorities_directory, error);
  }
  asio::ssl::verify_mode mode = asio::ssl::verify_none;
  if (verifies) mode = asio::ssl::verify_peer;
  if (files.clients == ClientCertificates::required) mode |= asio::ssl::verify_fail_if_no_peer_cert;
  context.set_verify_mode(mode);
  // Idle connections give their buffers back.
  SSL_CTX_set_mode(context.native_handle(), SSL_MODE_RELEASE_BUFFERS);
  return settings;
}

Opened<std::shared_ptr<TlsSettings>> load_tls(const TlsFiles& files) { return TlsSettings::load(files); }

}  // namespace weir::kv
