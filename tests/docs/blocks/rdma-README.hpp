// What a reader of rdma/README.md has already.
#include <array>
#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "rdma/acceptor.hpp"
#include "rdma/channel.hpp"
#include "rdma/engine.hpp"
#include "rdma/provider.hpp"
#include "rdma/stream.hpp"
#include "rpc/error.hpp"
using namespace weir;
//@ 1
asio::io_context io(1);
//@ 2
asio::io_context io(1);
auto provider = rdma::load_provider({});
auto engine = rdma::Engine::open(io, *provider);
