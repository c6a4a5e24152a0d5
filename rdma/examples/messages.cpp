// Messages over RDMA: a server that answers each with its length, and one client. Usage: rdma_messages
// [ADDRESS]
#include <asio.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "rdma/channel.hpp"
#include "rdma/engine.hpp"
#include "rdma/provider.hpp"

namespace rdma = weir::rdma;
using asio::use_awaitable;

asio::awaitable<void> serve_one(rdma::ChannelAcceptor acceptor) try {
  rdma::Channel channel = co_await acceptor.async_accept(use_awaitable);
  acceptor.close();
  for (;;) {
    const rdma::Message message = co_await channel.async_receive(use_awaitable);  // a view, no copy
    const std::string answer = std::to_string(message.size()) + " bytes";
    co_await channel.async_send(asio::buffer(answer), use_awaitable);
  }
} catch (const std::system_error&) {  // the client left
}

asio::awaitable<void> talk(rdma::Engine& engine, rdma::Endpoint server) {
  rdma::Channel channel(engine);
  const rdma::ChannelSettings settings;
  co_await rdma::async_connect(channel, server, settings, use_awaitable);
  const std::string hello = "hello over RDMA";
  co_await channel.async_send(asio::buffer(hello), use_awaitable);

  // A large message, filled where the device reads it: no copy on either side.
  auto buffer = channel.allocate(8 << 20);
  if (!buffer) throw std::runtime_error(buffer.error().what);
  std::memset(buffer->bytes().data(), 'x', buffer->size());
  co_await channel.async_send(std::move(*buffer), use_awaitable);

  for (int i = 0; i < 2; ++i) {
    const rdma::Message answer = co_await channel.async_receive(use_awaitable);
    std::printf("%.*s\n", static_cast<int>(answer.size()), reinterpret_cast<const char*>(answer.data()));
  }
}

int main(int argc, char** argv) try {
  const char* wanted = std::getenv("WEIR_RDMA_PROVIDER");
  const char* library_path = std::getenv("LD_LIBRARY_PATH");
  rdma::ProviderOptions options;
  options.choice = rdma::parse_provider_choice(wanted != nullptr ? wanted : "").value_or(options.choice);
  options.library_path = library_path != nullptr ? library_path : "";
  const auto provider = rdma::load_provider(options);
  if (!provider) return std::fprintf(stderr, "%s\n", provider.error().what.c_str()), 1;

  asio::io_context io(1);
  const auto engine = rdma::Engine::open(io, *provider);
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().what.c_str()), 1;
  auto acceptor =
      rdma::ChannelAcceptor::listen(**engine, {asio::ip::make_address(argc > 1 ? argv[1] : "127.0.0.1"), 0});
  if (!acceptor) return std::fprintf(stderr, "%s\n", acceptor.error().what.c_str()), 1;

  // Thrown from io.run(): if one end fails, the other may wait for it.
  const auto check = [](const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
  };
  const rdma::Endpoint address = acceptor->local_endpoint();
  asio::co_spawn(io, serve_one(std::move(*acceptor)), check);
  asio::co_spawn(io, talk(**engine, address), check);
  io.run();  // returns when both channels are closed
  return 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
