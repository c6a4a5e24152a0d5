#include "cli/client/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <string>

namespace weir::client {
namespace {

std::unexpected<Error> refused_by_openssl(const std::string& what) {
  char text[256] = "no reason given";
  if (const auto code = ::ERR_get_error()) ::ERR_error_string_n(code, text, sizeof text);
  ::ERR_clear_error();
  return fail(ErrorKind::usage, what + ": " + text);
}

Result<void> trust(SSL_CTX* context, const TlsSettings& settings) {
  if (settings.ca_file.empty() && settings.ca_dir.empty()) {
    if (::SSL_CTX_set_default_verify_paths(context) != 1)
      return refused_by_openssl("cannot load the system's roots");
    return {};
  }
  const char* file = settings.ca_file.empty() ? nullptr : settings.ca_file.c_str();
  const char* directory = settings.ca_dir.empty() ? nullptr : settings.ca_dir.c_str();
  if (::SSL_CTX_load_verify_locations(context, file, directory) != 1)
    return refused_by_openssl("cannot load the certificate authority (--cacert, --cacertdir)");
  return {};
}

Result<void> identify(SSL_CTX* context, const TlsSettings& settings) {
  if (settings.cert_file.empty() != settings.key_file.empty())
    return fail(ErrorKind::usage, "--cert and --key go together: a certificate and its private key");
  if (settings.cert_file.empty()) return {};
  if (::SSL_CTX_use_certificate_chain_file(context, settings.cert_file.c_str()) != 1)
    return refused_by_openssl("cannot load the certificate " + settings.cert_file);
  if (::SSL_CTX_use_PrivateKey_file(context, settings.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return refused_by_openssl("cannot load the private key " + settings.key_file);
  return {};
}

Result<void> choose_ciphers(SSL_CTX* context, const TlsSettings& settings) {
  if (!settings.ciphers.empty() && ::SSL_CTX_set_cipher_list(context, settings.ciphers.c_str()) != 1)
    return refused_by_openssl("--tls-ciphers " + settings.ciphers);
  if (!settings.ciphersuites.empty() &&
      ::SSL_CTX_set_ciphersuites(context, settings.ciphersuites.c_str()) != 1)
    return refused_by_openssl("--tls-ciphersuites " + settings.ciphersuites);
  return {};
}

bool same(const TlsSettings& a, const TlsSettings& b) {
  return a.ca_file == b.ca_file && a.ca_dir == b.ca_dir && a.cert_file == b.cert_file &&
         a.key_file == b.key_file && a.ciphers == b.ciphers && a.ciphersuites == b.ciphersuites &&
         a.verify == b.verify;
}

}  // namespace

Result<std::shared_ptr<asio::ssl::context>> TlsContextSource::context_for(const TlsSettings& settings) {
  if (context_ && same(settings, settings_)) return context_;
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  auto* native = context->native_handle();
  ::SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  ::SSL_CTX_set_verify(native, settings.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  for (const auto step : {trust, identify, choose_ciphers})
    if (auto done = step(native, settings); !done) return std::unexpected(std::move(done.error()));
  settings_ = settings;
  context_ = context;
  return context;
}

Result<void> name_server(SSL* tls, const TlsSettings& settings) {
  if (settings.server_name.empty()) return {};
  auto* const name = const_cast<char*>(settings.server_name.c_str());  // OpenSSL copies it
  if (::SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name) != 1)
    return refused_by_openssl("--sni " + settings.server_name);
  if (settings.verify && ::SSL_set1_host(tls, settings.server_name.c_str()) != 1)
    return refused_by_openssl("--sni " + settings.server_name);
  return {};
}

Error handshake_error(const Endpoint& endpoint, SSL* tls, std::error_code error) {
  std::string what = "TLS with " + address_of(endpoint) + " failed: ";
  const auto verdict = ::SSL_get_verify_result(tls);
  if (endpoint.tls.verify && verdict != X509_V_OK) {
    what += std::string("the server's certificate was not accepted (") +
            ::X509_verify_cert_error_string(verdict) +
            "); name its authority with --cacert, or skip the check with --insecure";
  } else {
    what += error.message() + "; does that port speak TLS?";
  }
  return Error{ErrorKind::refused, std::move(what)};
}

}  // namespace weir::client
