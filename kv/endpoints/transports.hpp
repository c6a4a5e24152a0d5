// What connections of all types share: the poller of plain sockets, the RDMA engine and the TLS certificates.
// The engine and the certificates are loaded when they are first needed.
//
// Threading: the server's one thread.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "kv/core/log_line.hpp"
#include "kv/net/listener.hpp"
#include "kv/net/poller.hpp"
#include "kv/settings/settings.hpp"
#include "transport/handshake_places.hpp"
#include "transport/tls_files.hpp"
#include "waiting/idle_spin.hpp"

namespace weir::rdma {
class Engine;
}

namespace weir::kv {

// The certificate that the server shows its clients, and what it demands of their certificates.
transport::TlsFiles tls_files(const Settings& settings);

class Transports {
 public:
  // `end_round` runs after each round of input. `library_path` may name folders of RDMA libraries.
  Transports(asio::io_context& io, const Settings& settings, std::string library_path,
             std::function<void()> end_round, LogLine log);

  asio::io_context& io() { return io_; }
  SocketPoller& sockets() { return sockets_; }
  // Call after a round of input from sockets: the loop polls a little longer before it sleeps.
  void end_socket_round();
  const std::function<void()>& end_round() const { return end_round_; }

  // Loads the provider and starts its engine, once. The error is for a user to read.
  std::expected<void, std::string> start_rdma();
  rdma::Engine& rdma() { return *rdma_; }  // only after start_rdma()
  // "weir", "system", or empty while there is no RDMA.
  const std::string& rdma_provider() const { return rdma_provider_; }
  // To memory of ours that RDMA peers have no right to.
  std::uint64_t rdma_refused_accesses() const;

  std::expected<void, std::string> start_tls();
  // Rereads the certificates for clients that connect from now on. On failure the old ones stay.
  std::expected<void, std::string> load_tls_again();
  const std::shared_ptr<TlsSettings>& tls() const { return tls_; }

  // Shared by all TLS listeners.
  const std::shared_ptr<transport::HandshakePlaces>& handshake_places() const { return places_; }

 private:
  bool rdma_polls() const;

  asio::io_context& io_;
  const Settings& settings_;
  const std::string library_path_;
  const std::function<void()> end_round_;
  const LogLine log_;
  waiting::IdleSpin idle_spin_;
  SocketPoller sockets_;
  rdma::Engine* rdma_ = nullptr;  // owned by the io_context
  std::string rdma_provider_;
  std::shared_ptr<TlsSettings> tls_;
  const std::shared_ptr<transport::HandshakePlaces> places_ = std::make_shared<transport::HandshakePlaces>();
};

}  // namespace weir::kv
