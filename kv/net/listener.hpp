// Accepts clients. There is one listener for each port or path; its kind decides the kind of its connections.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "kv/net/connection.hpp"
#include "transport/handshake_places.hpp"
#include "transport/tls_files.hpp"

namespace weir::kv {

class SocketPoller;

// Takes an accepted connection that is not yet started.
using Accept = std::function<void(std::unique_ptr<Connection>)>;
using Log = std::function<void(std::string_view)>;

class Listener {
 public:
  virtual ~Listener() = default;          // stops listening; accepted connections live on
  virtual std::string where() const = 0;  // for the log: "tcp 0.0.0.0:6379"
  virtual std::uint16_t port() const { return 0; }
};

// The error says why a listener could not be opened, in words for a user.
template <class T>
using Opened = std::expected<T, std::string>;
using OpenedListener = Opened<std::unique_ptr<Listener>>;

struct SocketOptions {
  int backlog = 511;
  std::function<int()> keepalive_s;  // read for each accepted client; 0: off
};

// `address` is a numeric address or a host name; port 0 takes a free port.
OpenedListener listen_tcp(SocketPoller& poller, const std::string& address, std::uint16_t port,
                          const SocketOptions& options, Accept accept, Log log);

// Replaces a stale socket file. `mode` 0 leaves the permissions that the umask gives.
OpenedListener listen_unix(SocketPoller& poller, const std::string& path, unsigned mode,
                           const SocketOptions& options, Accept accept, Log log);

// A TLS configuration shared by the listeners that use it. They ask for it with each new client, so it can be
// renewed; a connected client keeps the one that it connected with.
class TlsSettings;
using CurrentTls = std::function<std::shared_ptr<TlsSettings>()>;
Opened<std::shared_ptr<TlsSettings>> load_tls(const transport::TlsFiles& files);
// For connections that this server makes. It shows its certificate if it has one, and the other side must
// show one that one of these authorities signed.
Opened<std::shared_ptr<TlsSettings>> load_tls_to_dial(const transport::TlsFiles& files);

// While all `places` are taken, one of the handshakes leaves for each client that comes.
OpenedListener listen_tls(SocketPoller& poller, asio::io_context& io, CurrentTls tls,
                          const std::shared_ptr<transport::HandshakePlaces>& places,
                          const std::string& address, std::uint16_t port, const SocketOptions& options,
                          Accept accept, std::function<void()> after_input, Log log);

}  // namespace weir::kv
