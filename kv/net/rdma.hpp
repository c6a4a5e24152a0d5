// The connection types "rdma" and "rdma+tls". Valkey's protocol over RDMA; see rdma/stream.hpp.
#pragma once

#include <memory>

#include "kv/net/listener.hpp"
#include "rdma/engine.hpp"
#include "rdma/handshake_places.hpp"
#include "rdma/settings.hpp"

namespace weir::kv {

struct RdmaListenOptions {
  rdma::StreamSettings stream;
  std::uint32_t backlog = 511;
};

// With `tls` the clients speak TLS inside the stream, and no more than there are `places` begin at once. "*"
// and "::*" are the wildcard addresses.
OpenedListener listen_rdma(rdma::Engine& engine, const std::string& address, std::uint16_t port,
                           const RdmaListenOptions& options, CurrentTls tls,
                           std::shared_ptr<rdma::HandshakePlaces> places, Accept accept,
                           std::function<void()> after_input, Log log);

}  // namespace weir::kv
