#include "tensor/link/tls_settings.hpp"

#include <utility>

namespace weir::tensor {

Result<transport::TlsContext> tls_context_of(const TlsSettings& settings, transport::TlsSide side) {
  using transport::PeerCertificate;
  const bool hub = side == transport::TlsSide::server;
  if (hub && (settings.certificate.empty() || settings.key.empty()))
    return fail(Errc::bad_address, "tls:// needs a certificate and its key (tls.certificate, tls.key)");
  const bool asks = !hub || !settings.authority.empty();
  auto made = transport::make_tls_context(
      side, {.certificate = settings.certificate,
             .key = settings.key,
             .authorities = settings.authority,
             .system_authorities = !hub,
             .peer = asks ? PeerCertificate::required : PeerCertificate::ignored});
  if (!made)
    return fail(Errc::bad_address, "'" + made.error().value + "' cannot be used: " + made.error().reason);
  return std::move(*made);
}

}  // namespace weir::tensor
