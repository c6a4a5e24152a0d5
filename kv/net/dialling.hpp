// Connections that this server makes: to the primary that it follows.
//
// An attempt never blocks: a name is looked up in a thread of Asio's, the connection is made in the
// background. The caller limits how long that may take: it gives an attempt up by destroying it.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kv/net/listener.hpp"

namespace weir::kv {

class Dialling {
 public:
  virtual ~Dialling() = default;  // nothing is told any more
};

// Takes a connection that has not been started, or the reason why there is none. May destroy the attempt.
using Dialled = std::function<void(Opened<std::unique_ptr<Connection>>)>;

// `host` is a numeric address or a name. `dialled` is called later, never at once.
std::unique_ptr<Dialling> dial_tcp(SocketPoller& poller, asio::io_context& io, const std::string& host,
                                   std::uint16_t port, Dialled dialled);

// The same, behind TLS. `after_input` is called at the end of each round in which something came.
std::unique_ptr<Dialling> dial_tls(asio::io_context& io, std::shared_ptr<TlsSettings> tls,
                                   const std::string& host, std::uint16_t port,
                                   std::function<void()> after_input, Dialled dialled);

// A unix socket of this host.
std::unique_ptr<Dialling> dial_unix(SocketPoller& poller, asio::io_context& io, const std::string& path,
                                    Dialled dialled);

}  // namespace weir::kv
