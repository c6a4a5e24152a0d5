// Notes the progress of a server's TLS handshake: each whole handshake message that the client has sent.
//
// OpenSSL takes only the message that its state machine expects next, so a handshake has at most six of them
// (two ClientHellos, Certificate, CertificateVerify, ClientKeyExchange, Finished), however the bytes come.
// Alerts, record headers and the change of cipher, which TLS 1.3 ignores, are not messages of it.
//
// Threading: the stream's.
#pragma once

#include <openssl/types.h>

#include "transport/handshake_places.hpp"

namespace weir::transport {

class HandshakeProgress {
 public:
  // Both outlive this.
  HandshakeProgress(SSL* ssl, const HandshakePlaces::Place& place);
  ~HandshakeProgress();
  HandshakeProgress(const HandshakeProgress&) = delete;
  HandshakeProgress& operator=(const HandshakeProgress&) = delete;

 private:
  SSL* const ssl_;
};

}  // namespace weir::transport
