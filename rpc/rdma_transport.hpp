// RDMA as a transport, and the engine that an io_context's connections share.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>

#include "rdma/stream.hpp"
#include "rpc/address.hpp"
#include "rpc/transport.hpp"
#include "rpc/transport_options.hpp"

namespace weir::rpc {

// The engine of `io`: the one in the options, else one that is opened at first use.
Result<rdma::Engine*> engine_of(asio::io_context& io, const TransportOptions& options);
TransportPtr make_rdma_transport(rdma::Stream stream);
Result<rdma::Endpoint> rdma_endpoint(const Address& address);
std::string rdma_peer(const rdma::Stream& stream);

}  // namespace weir::rpc
