// Connections that this server makes: to the primary that it follows, or to a node of a cluster.
//
// An attempt never blocks: Asio looks a name up in a thread and connects in the background. The caller limits
// the time of an attempt by destroying it.
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
  virtual ~Dialling() = default;  // `dialled` is not called after this
};

// Takes a connection not yet started, or the reason why there is none. It may destroy the attempt.
using Dialled = std::function<void(Opened<std::unique_ptr<Connection>>)>;

// `host` is a numeric address or a name. `dialled` is called later, never at once.
std::unique_ptr<Dialling> dial_tcp(SocketPoller& poller, asio::io_context& io, const std::string& host,
                                   std::uint16_t port, Dialled dialled);

// Likewise, with TLS. `after_input` is called at the end of each round in which bytes arrived.
std::unique_ptr<Dialling> dial_tls(asio::io_context& io, std::shared_ptr<TlsSettings> tls,
                                   const std::string& host, std::uint16_t port,
                                   std::function<void()> after_input, Dialled dialled);

// Connects to a unix socket of this host.
std::unique_ptr<Dialling> dial_unix(SocketPoller& poller, asio::io_context& io, const std::string& path,
                                    Dialled dialled);

}  // namespace weir::kv
