// RDMA as a transport, over rdma::Channel, and the engine that an io_context's connections share. TLS needs a
// stream of bytes: rdma+tls:// is over rdma::Stream (tls_transport.hpp).
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>

#include "rdma/channel.hpp"
#include "rpc/transport/transport.hpp"
#include "rpc/transport_options.hpp"

namespace weir::rpc {

// The engine of `io`: the one in the options, else one opened at first use.
Result<rdma::Engine*> engine_of(asio::io_context& io, const TransportOptions& options);
// The engine of `io`, in another thread: the one it has, else one with the settings of `like`. From any
// thread.
Result<rdma::Engine*> engine_beside(const rdma::Engine& like, asio::io_context& io);
// Errc::bad_setting if the options ask for what no channel can have.
Result<rdma::ChannelAcceptorSettings> rdma_acceptor_settings(const TransportOptions& options);
asio::awaitable<Result<TransportPtr>> connect_rdma_channel(rdma::Engine& engine, rdma::Endpoint at,
                                                           std::chrono::milliseconds timeout,
                                                           TransportOptions options);
TransportPtr make_rdma_transport(rdma::Channel channel);

}  // namespace weir::rpc
