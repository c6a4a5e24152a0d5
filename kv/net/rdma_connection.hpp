// A connection over an RDMA stream, whichever side began it; plain or with TLS inside.
//
// Plain RDMA costs one copy out of the receive buffer (the peer can rewrite that memory at any time, so
// nothing is parsed in place) and one write to the device for all replies of a batch; a large value is read
// by the device where it lies, if it can. Input is taken while replies wait for the peer's buffer, as long as
// the session has an appetite: a peer may have to finish writing before it reads. What it does not take stays
// in the receive buffers, so the peer is given no more room.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kv/net/connection.hpp"
#include "kv/net/tls_settings.hpp"
#include "rdma/stream.hpp"
#include "transport/handshake_places.hpp"

namespace weir::kv {

// Without `tls`: plain. `after_input` runs when received bytes have been handled; `place` is given back when
// TLS's handshake is over.
std::unique_ptr<Connection> over_rdma(rdma::Stream stream, std::shared_ptr<TlsSettings> tls,
                                      std::function<void()> after_input,
                                      transport::HandshakePlaces::Place place = {});

std::string address_text(const rdma::Endpoint& endpoint);

}  // namespace weir::kv
