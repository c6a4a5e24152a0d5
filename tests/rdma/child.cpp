// The other process of process_test: connects to ADDRESS PORT and does one of these until it is killed.
//   flood: writes without end        idle: connects and waits        echo: sends back what arrives
//   channel-flood, channel-offers, channel-idle, channel-echo: the same with messages; offers are large ones
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "rdma/channel.hpp"
#include "rdma/engine.hpp"
#include "rdma/provider.hpp"
#include "rdma/stream.hpp"

namespace rdma = weir::rdma;

namespace {

void flood(rdma::Stream& stream, const std::vector<char>& data) {
  while (stream.try_write(asio::buffer(data)) > 0) {
  }
}

void echo(rdma::Stream& stream) {
  while (!stream.readable().empty()) {
    const auto bytes = stream.readable();
    const std::size_t taken = stream.try_write(asio::const_buffer(bytes.data(), bytes.size()));
    if (taken == 0) return;
    stream.consume(taken);
  }
}

void run_channel(asio::io_context& io, rdma::Engine& engine, const rdma::Endpoint& server,
                 const std::string& what) {
  rdma::Channel channel(engine);
  const std::vector<char> message(what == "channel-offers" ? 300'000 : 1000, 'm');
  const auto flood = [&] {
    while (channel.try_send(asio::buffer(message))) {
    }
  };
  const auto echo = [&] {
    while (auto got = channel.try_receive()) {
      const asio::const_buffer bytes(got->data(), got->size());
      if (!channel.try_send(bytes)) std::exit(3);  // the other end waits for each echo
    }
  };
  rdma::async_connect(channel, server, rdma::ChannelSettings(), [&](std::error_code failed) {
    if (failed) {
      std::fprintf(stderr, "%s\n", channel.error().what.c_str());
      std::exit(1);
    }
    const bool floods = what == "channel-flood" || what == "channel-offers";
    if (floods) {
      channel.on_writable(flood);
      flood();
    }
    channel.on_readable([&] {
      if (what == "channel-echo") echo();
      if (channel.end()) std::exit(0);
    });
  });
  io.run();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string what = argv[3];
  const char* wanted = std::getenv("WEIR_RDMA_PROVIDER");
  rdma::ProviderOptions options;
  options.choice = rdma::parse_provider_choice(wanted != nullptr ? wanted : "").value_or(options.choice);
  const auto provider = rdma::load_provider(options);
  if (!provider) return std::fprintf(stderr, "%s\n", provider.error().what.c_str()), 1;
  asio::io_context io(1);
  const auto engine = rdma::Engine::open(io, *provider);
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().what.c_str()), 1;

  const rdma::Endpoint server(asio::ip::make_address(argv[1]),
                              static_cast<std::uint16_t>(std::atoi(argv[2])));
  if (what.starts_with("channel-")) {
    run_channel(io, **engine, server, what);
    return 0;
  }
  rdma::Stream stream(**engine);
  const std::vector<char> data(100'000, 'f');
  rdma::async_connect(stream, server, {}, [&](std::error_code failed) {
    if (failed) {
      std::fprintf(stderr, "%s\n", stream.error().what.c_str());
      std::exit(1);
    }
    if (what == "flood") {
      stream.on_writable([&] { flood(stream, data); });
      flood(stream, data);
    }
    stream.on_readable([&] {
      if (what == "echo") echo(stream);
      if (stream.end()) std::exit(0);
    });
    if (what == "echo") stream.on_writable([&] { echo(stream); });
  });
  io.run();
}
