// A user's program, built against an installed Weir: bytes over an Asio stream of RDMA.
#include <array>
#include <asio.hpp>
#include <cstdio>
#include <weir/rdma/acceptor.hpp>
#include <weir/rdma/engine.hpp>
#include <weir/rdma/provider.hpp>
#include <weir/rdma/stream.hpp>

namespace rdma = weir::rdma;

asio::awaitable<void> greet(rdma::Acceptor acceptor) {
  rdma::Stream stream = co_await acceptor.async_accept(asio::use_awaitable);
  co_await asio::async_write(stream, asio::buffer("hello, stranger\n", 16), asio::use_awaitable);
}

asio::awaitable<void> listen_to(rdma::Engine& engine, rdma::Endpoint server) {
  rdma::Stream stream(engine);
  const rdma::StreamSettings settings;
  co_await rdma::async_connect(stream, server, settings, asio::use_awaitable);
  std::array<char, 16> line{};
  co_await asio::async_read(stream, asio::buffer(line), asio::use_awaitable);
  std::fwrite(line.data(), 1, line.size(), stdout);
}

int main() {
  const auto provider = rdma::load_provider({});
  if (!provider) return std::puts(provider.error().what.c_str()), 1;
  asio::io_context io(1);
  const auto engine = rdma::Engine::open(io, *provider);
  auto acceptor = rdma::Acceptor::listen(**engine, {asio::ip::address_v4::loopback(), 0});
  const rdma::Endpoint address = acceptor->local_endpoint();
  asio::co_spawn(io, greet(std::move(*acceptor)), asio::detached);
  asio::co_spawn(io, listen_to(**engine, address), asio::detached);
  io.run();
}
