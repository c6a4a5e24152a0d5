// Settings of a server with certificates, and the certificates that clients may show.
#pragma once

#include <asio/ssl.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "tests/certificates.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {

using test::certificates;

// `settings` with the server's files; clients must show a certificate unless the caller sets otherwise.
inline Settings with_certificates(Settings settings) {
  settings.bind = "127.0.0.1";
  settings.tls_cert_file = certificates().certificate("server");
  settings.tls_key_file = certificates().key("server");
  settings.tls_ca_cert_file = certificates().certificate("ca");
  return settings;
}

// A client's side: the authority that it trusts, and its certificate (empty: none).
inline asio::ssl::context client_context(const std::string& shows, const std::string& trusts = "ca") {
  asio::ssl::context context(asio::ssl::context::tls_client);
  context.load_verify_file(certificates().certificate(trusts));
  context.set_verify_mode(asio::ssl::verify_peer);
  if (!shows.empty()) {
    context.use_certificate_chain_file(certificates().certificate(shows));
    context.use_private_key_file(certificates().key(shows), asio::ssl::context::pem);
  }
  return context;
}

// The effect of tls-auth-clients on a client's certificate.
struct ClientCertificateCase {
  const char* setting;
  const char* shows;
  bool served;

  int choice() const { return std::string(setting) == "no" ? 0 : std::string(setting) == "yes" ? 1 : 2; }
  friend void PrintTo(const ClientCertificateCase& c, std::ostream* out) {
    *out << "tls-auth-clients " << c.setting << ", client shows " << (*c.shows == 0 ? "none" : c.shows);
  }
};
inline constexpr ClientCertificateCase client_certificate_cases[] = {
    {"no", "", true},       {"no", "client", true},       {"no", "stranger", true},
    {"yes", "", false},     {"yes", "client", true},      {"yes", "stranger", false},
    {"optional", "", true}, {"optional", "client", true}, {"optional", "stranger", false},
};

}  // namespace weir::kv::testing
