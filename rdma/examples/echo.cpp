// An Asio program on RDMA: an echo server and one client that talks to it. Usage: rdma_echo [ADDRESS]
#include <array>
#include <asio.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "rdma/acceptor.hpp"
#include "rdma/engine.hpp"
#include "rdma/provider.hpp"
#include "rdma/stream.hpp"

namespace rdma = weir::rdma;
using asio::use_awaitable;

asio::awaitable<void> echo(rdma::Stream stream) try {
  std::array<char, 4096> data;
  for (;;) {
    const std::size_t bytes = co_await stream.async_read_some(asio::buffer(data), use_awaitable);
    co_await asio::async_write(stream, asio::buffer(data, bytes), use_awaitable);
  }
} catch (const std::system_error&) {  // the client left
}

asio::awaitable<void> serve_one(rdma::Acceptor acceptor) {
  rdma::Stream stream = co_await acceptor.async_accept(use_awaitable);
  co_await echo(std::move(stream));
}

asio::awaitable<void> talk(rdma::Engine& engine, rdma::Endpoint server) {
  rdma::Stream stream(engine);
  const rdma::StreamSettings settings;
  co_await rdma::async_connect(stream, server, settings, use_awaitable);
  const std::string line = "hello over RDMA\n";
  co_await asio::async_write(stream, asio::buffer(line), use_awaitable);
  std::string answer(line.size(), '\0');
  co_await asio::async_read(stream, asio::buffer(answer), use_awaitable);
  std::fputs(answer.c_str(), stdout);
}

int main(int argc, char** argv) try {
  const char* wanted = std::getenv("WEIR_RDMA_PROVIDER");
  const char* library_path = std::getenv("LD_LIBRARY_PATH");
  rdma::ProviderOptions options;
  options.choice = rdma::parse_provider_choice(wanted != nullptr ? wanted : "").value_or(options.choice);
  options.library_path = library_path != nullptr ? library_path : "";
  const auto provider = rdma::load_provider(options);
  if (!provider) return std::fprintf(stderr, "%s\n", provider.error().what.c_str()), 1;
  std::printf("%s\n", provider->describe().c_str());

  asio::io_context io(1);
  const auto engine = rdma::Engine::open(io, *provider);
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().what.c_str()), 1;
  auto acceptor =
      rdma::Acceptor::listen(**engine, {asio::ip::make_address(argc > 1 ? argv[1] : "127.0.0.1"), 0});
  if (!acceptor) return std::fprintf(stderr, "%s\n", acceptor.error().what.c_str()), 1;

  // Thrown from io.run(): if one end fails, the other may wait for it.
  const auto check = [](const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
  };
  const rdma::Endpoint address = acceptor->local_endpoint();
  asio::co_spawn(io, serve_one(std::move(*acceptor)), check);
  asio::co_spawn(io, talk(**engine, address), check);
  io.run();  // returns when both streams are closed
  return 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
