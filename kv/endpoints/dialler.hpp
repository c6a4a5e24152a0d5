// Connections that this server makes to other servers, in the way that the settings say.
//
// Threading: the server's one thread. An attempt is given up by destroying it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kv/endpoints/transports.hpp"
#include "kv/net/dialling.hpp"
#include "kv/settings/settings.hpp"

namespace weir::kv {

class Dialler {
 public:
  Dialler(const Settings& settings, Transports& transports) : settings_(settings), transports_(transports) {}

  // The TLS settings for a connection to a primary; null: without TLS. Read anew, as files may change.
  Opened<std::shared_ptr<TlsSettings>> tls_to_primary() const;
  // Begins a connection to a primary; `host` may be the path of a unix socket. The error says why the TLS
  // files or RDMA cannot be used.
  Opened<std::unique_ptr<Dialling>> dial_primary(const std::string& host, std::uint16_t port,
                                                 Dialled dialled);
  // Likewise to a node of a cluster: over TCP, with TLS if tls-cluster is on.
  Opened<std::unique_ptr<Dialling>> dial_node(const std::string& host, std::uint16_t port, Dialled dialled);

 private:
  std::unique_ptr<Dialling> dial_with_tls(std::shared_ptr<TlsSettings> tls, const std::string& host,
                                          std::uint16_t port, Dialled dialled);

  const Settings& settings_;
  Transports& transports_;
};

}  // namespace weir::kv
