#include "kv/net/tls_settings.hpp"

#include <memory>
#include <string>

namespace weir::kv {

namespace {

using LoadedTls = Opened<std::shared_ptr<TlsSettings>>;
using transport::PeerCertificate;
using transport::TlsFiles;

std::unexpected<std::string> cannot(const std::string& why) {
  return std::unexpected("Could not set up TLS: " + why);
}

bool has_authorities(const TlsFiles& files) {
  return !files.authorities.empty() || !files.authorities_directory.empty();
}

std::string in_words(transport::TlsFault::Part part) {
  using Part = transport::TlsFault::Part;
  switch (part) {
    case Part::certificate:
      return "the certificate file";
    case Part::key:
      return "the key file";
    case Part::authorities:
      return "the authorities file";
    case Part::authorities_directory:
      return "the authorities directory";
    case Part::ciphers:
    case Part::ciphersuites:
      break;
  }
  return "the ciphers";
}

LoadedTls made_from(transport::TlsSide side, const TlsFiles& files) {
  auto context = transport::make_tls_context(side, files);
  if (!context) {
    const transport::TlsFault& fault = context.error();
    return cannot(in_words(fault.part) + " '" + fault.value + "': " + fault.reason +
                  ". Check the --tls-... options.");
  }
  const auto role =
      side == transport::TlsSide::server ? TlsSettings::Side::server : TlsSettings::Side::client;
  return std::make_shared<TlsSettings>(role, std::move(*context));
}

}  // namespace

LoadedTls load_tls(const TlsFiles& files) {
  if (files.certificate.empty() || files.key.empty())
    return cannot("give the server's certificate (--tls-cert-file) and its key (--tls-key-file).");
  if (files.peer != PeerCertificate::ignored && !has_authorities(files)) {
    return cannot(
        "clients are asked for certificates, but nothing says who may sign them. Give --tls-ca-cert-file or "
        "--tls-ca-cert-dir, or --tls-auth-clients no.");
  }
  return made_from(transport::TlsSide::server, files);
}

LoadedTls load_tls_to_dial(const TlsFiles& files) {
  if (!has_authorities(files)) {
    return cannot(
        "nothing says who may sign the primary's certificate. Give --tls-ca-cert-file or "
        "--tls-ca-cert-dir.");
  }
  TlsFiles wanted = files;
  wanted.peer = PeerCertificate::required;
  return made_from(transport::TlsSide::client, wanted);
}

}  // namespace weir::kv
