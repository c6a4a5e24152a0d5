#include "kv/net/tls_settings.hpp"

#include <asio/ssl.hpp>

namespace weir::kv {

namespace {

using LoadedTls = Opened<std::shared_ptr<TlsSettings>>;

std::unexpected<std::string> cannot(const std::string& why) {
  return std::unexpected("Could not set up TLS: " + why);
}

bool has_authorities(const TlsFiles& files) {
  return !files.authorities.empty() || !files.authorities_directory.empty();
}

}  // namespace

TlsSettings::TlsSettings(Side side)
    : side_(side),
      context_(side == Side::server ? asio::ssl::context::tls_server : asio::ssl::context::tls_client) {
  using Options = asio::ssl::context;
  context_.set_options(Options::default_workarounds | Options::no_sslv2 | Options::no_sslv3 |
                       Options::no_tlsv1 | Options::no_tlsv1_1);
  // Idle connections give their buffers back.
  SSL_CTX_set_mode(context_.native_handle(), SSL_MODE_RELEASE_BUFFERS);
}

Opened<void> TlsSettings::use(const TlsFiles& files) {
  const auto failed = [](const std::string& what, const std::string& file, const asio::error_code& error) {
    return cannot(what + " '" + file + "': " + error.message() + ". Check the --tls-... options.");
  };
  asio::error_code error;
  context_.set_password_callback([password = files.key_password](
                                     std::size_t, asio::ssl::context::password_purpose) { return password; });
  if (!files.certificate.empty()) {
    context_.use_certificate_chain_file(files.certificate, error);
    if (error) return failed("the certificate file", files.certificate, error);
    context_.use_private_key_file(files.key, asio::ssl::context::pem, error);
    if (error) return failed("the key file", files.key, error);
  }
  if (!files.authorities.empty()) {
    context_.load_verify_file(files.authorities, error);
    if (error) return failed("the authorities file", files.authorities, error);
  }
  if (!files.authorities_directory.empty()) {
    context_.add_verify_path(files.authorities_directory, error);
    if (error) return failed("the authorities directory", files.authorities_directory, error);
  }
  return {};
}

LoadedTls TlsSettings::load(const TlsFiles& files) {
  if (files.certificate.empty() || files.key.empty())
    return cannot("give the server's certificate (--tls-cert-file) and its key (--tls-key-file).");
  const bool verifies = files.clients != ClientCertificates::ignored;
  if (verifies && !has_authorities(files)) {
    return cannot(
        "clients are asked for certificates, but nothing says who may sign them. Give --tls-ca-cert-file or "
        "--tls-ca-cert-dir, or --tls-auth-clients no.");
  }
  std::shared_ptr<TlsSettings> settings(new TlsSettings(Side::server));
  if (auto used = settings->use(files); !used) return std::unexpected(std::move(used.error()));
  asio::ssl::verify_mode mode = asio::ssl::verify_none;
  if (verifies) mode = asio::ssl::verify_peer;
  if (files.clients == ClientCertificates::required) mode |= asio::ssl::verify_fail_if_no_peer_cert;
  settings->context_.set_verify_mode(mode);
  return settings;
}

LoadedTls TlsSettings::load_to_dial(const TlsFiles& files) {
  if (!has_authorities(files)) {
    return cannot(
        "nothing says who may sign the primary's certificate. Give --tls-ca-cert-file or "
        "--tls-ca-cert-dir.");
  }
  std::shared_ptr<TlsSettings> settings(new TlsSettings(Side::client));
  if (auto used = settings->use(files); !used) return std::unexpected(std::move(used.error()));
  settings->context_.set_verify_mode(asio::ssl::verify_peer);
  return settings;
}

LoadedTls load_tls(const TlsFiles& files) { return TlsSettings::load(files); }
LoadedTls load_tls_to_dial(const TlsFiles& files) { return TlsSettings::load_to_dial(files); }

}  // namespace weir::kv
