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

// Explains the fault in terms of the options.
Error explain(const transport::TlsFault& fault) {
  using Part = transport::TlsFault::Part;
  std::string what;
  switch (fault.part) {
    case Part::certificate:
      what = "cannot load the certificate " + fault.value;
      break;
    case Part::key:
      what = "cannot load the private key " + fault.value;
      break;
    case Part::authorities:
    case Part::authorities_directory:
      what = "cannot load the certificate authority " + fault.value + " (--cacert, --cacertdir)";
      break;
    case Part::ciphers:
      what = "--tls-ciphers " + fault.value;
      break;
    case Part::ciphersuites:
      what = "--tls-ciphersuites " + fault.value;
      break;
  }
  return Error{ErrorKind::usage, what + ": " + fault.reason};
}

}  // namespace

Result<transport::TlsContext> TlsContextSource::context_for(const TlsSettings& settings) {
  if (context_ && settings.files == files_) return context_;
  const transport::TlsFiles& files = settings.files;
  if (files.certificate.empty() != files.key.empty())
    return fail(ErrorKind::usage, "--cert and --key go together: a certificate and its private key");
  auto context = transport::make_tls_context(transport::TlsSide::client, files);
  if (!context) return std::unexpected(explain(context.error()));
  files_ = files;
  context_ = *context;
  return context_;
}

Result<void> name_server(SSL* tls, const TlsSettings& settings) {
  if (settings.server_name.empty()) return {};
  auto* const name = const_cast<char*>(settings.server_name.c_str());  // OpenSSL copies it
  if (::SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name) != 1)
    return refused_by_openssl("--sni " + settings.server_name);
  if (settings.verify() && ::SSL_set1_host(tls, settings.server_name.c_str()) != 1)
    return refused_by_openssl("--sni " + settings.server_name);
  return {};
}

Error handshake_error(const Endpoint& endpoint, SSL* tls, std::error_code error) {
  std::string what = "TLS with " + address_of(endpoint) + " failed: ";
  const auto verdict = ::SSL_get_verify_result(tls);
  if (endpoint.tls.verify() && verdict != X509_V_OK) {
    what += std::string("the server's certificate was not accepted (") +
            ::X509_verify_cert_error_string(verdict) +
            "); name its authority with --cacert, or skip the check with --insecure";
  } else {
    what += error.message() + "; does that port speak TLS?";
  }
  return Error{ErrorKind::refused, std::move(what)};
}

}  // namespace weir::client
