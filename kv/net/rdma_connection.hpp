// A connection over an RDMA stream, whichever side opened it; plain or with TLS inside.
//
// Plain RDMA costs one copy out of the receive buffer and one write to the device for all replies of a batch.
// (The peer can rewrite that buffer at any time, so nothing is parsed in place.) The device reads a large
// value in place if it can. Input is taken even while replies wait for the peer's buffer, as long as the
// session has an appetite: a peer may have to finish writing before it reads. Bytes not taken stay in the
// receive buffers, so the peer gets no more room.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kv/net/connection.hpp"
#include "kv/net/tls_settings.hpp"
#include "rdma/stream.hpp"
#include "transport/handshake_places.hpp"

namespace weir::kv {

// Without `tls`: plain. `after_input` runs after received bytes have been handled. `place` is given back
// when the TLS handshake is over.
std::unique_ptr<Connection> over_rdma(rdma::Stream stream, std::shared_ptr<TlsSettings> tls,
                                      std::function<void()> after_input,
                                      transport::HandshakePlaces::Place place = {});

std::string address_text(const rdma::Endpoint& endpoint);

}  // namespace weir::kv
