// The connection types "rdma" and "rdma+tls": listening, and dialling another server. They speak Valkey's
// protocol over RDMA; see rdma/stream.hpp.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kv/net/dialling.hpp"
#include "kv/net/listener.hpp"
#include "rdma/engine.hpp"
#include "rdma/settings.hpp"
#include "transport/handshake_places.hpp"

namespace weir::kv {

struct RdmaListenOptions {
  rdma::StreamSettings stream;
  std::uint32_t backlog = 511;
};

// With `tls` the clients speak TLS inside the stream, and at most as many handshakes run at once as there are
// `places`: while all are taken, one leaves for each client that comes. "*" and "::*" are the wildcard
// addresses.
OpenedListener listen_rdma(rdma::Engine& engine, const std::string& address, std::uint16_t port,
                           const RdmaListenOptions& options, CurrentTls tls,
                           std::shared_ptr<transport::HandshakePlaces> places, Accept accept,
                           std::function<void()> after_input, Log log);

struct RdmaDial {
  rdma::StreamSettings stream;
  std::shared_ptr<TlsSettings> tls;  // null: plain
  std::function<void()> after_input;
};

// `host` is a numeric address or a name. `dialled` is called later, never at once.
std::unique_ptr<Dialling> dial_rdma(rdma::Engine& engine, const std::string& host, std::uint16_t port,
                                    RdmaDial how, Dialled dialled);

}  // namespace weir::kv
