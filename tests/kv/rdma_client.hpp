// A blocking client of the server over RDMA, on the software NIC that this build made;
// plain, or with TLS over it.
#pragma once

#include <asio/read.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <optional>

#include "rdma/engine.hpp"
#include "rdma/provider.hpp"
#include "rdma/stream.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {

inline Settings rdma_settings() {
  Settings settings = quiet_settings();
  settings.bind = "127.0.0.1";
  settings.port = any_port;
  settings.rdma_port = any_port;
  settings.rdma_provider = 1;
  return settings;
}

// Uses Weir's NIC.
inline rdma::Engine& open_engine(asio::io_context& io) {
  rdma::ProviderOptions options;
  options.choice = rdma::ProviderChoice::weir;
  auto provider = rdma::load_provider(options);
  if (!provider) throw std::runtime_error(provider.error().what);
  auto engine = rdma::Engine::open(io, *provider);
  if (!engine) throw std::runtime_error(engine.error().what);
  return **engine;
}

// Runs its own io_context until what it waits for has happened.
class RdmaClient {
 public:
  explicit RdmaClient(std::uint16_t port) : stream_(open_engine(io_)) {
    const rdma::Endpoint peer(asio::ip::address_v4::loopback(), port);
    std::error_code failed = asio::error::would_block;
    const rdma::StreamSettings settings;
    rdma::async_connect(stream_, peer, settings, [&](std::error_code error) { failed = error; });
    until([&] { return failed != asio::error::would_block; });
    if (failed) throw std::runtime_error("connect: " + stream_.error().what);
  }

  // Uses TLS from here on.
  void start_tls(asio::ssl::context context) {
    context_.emplace(std::move(context));
    tls_.emplace(stream_, *context_);
    std::error_code failed = asio::error::would_block;
    tls_->async_handshake(asio::ssl::stream_base::client, [&](std::error_code error) { failed = error; });
    until([&] { return failed != asio::error::would_block; });
    if (failed) throw std::system_error(failed);
  }
  std::string exactly(const std::string& request, std::size_t size) {
    return tls_ ? exchange(*tls_, request, size) : exchange(stream_, request, size);
  }
  // That many replies, raw, to these requests.
  std::vector<std::string> replies(const std::string& requests, std::size_t count) {
    std::vector<std::string> whole;
    std::string wanted = requests;
    while (whole.size() < count) {
      const std::size_t size = whole_reply(unread_);
      if (size == 0) {
        unread_ += exactly(std::exchange(wanted, {}), 1);
        continue;
      }
      whole.push_back(unread_.substr(0, size));
      unread_.erase(0, size);
    }
    return whole;
  }
  // Waits until the server has closed the connection; whether it did.
  bool ended() {
    char byte = 0;
    std::error_code failed = asio::error::would_block;
    asio::async_read(stream_, asio::buffer(&byte, 1),
                     [&](std::error_code error, std::size_t) { failed = error; });
    until([&] { return failed != asio::error::would_block; });
    return failed != std::error_code{};
  }

 private:
  template <class Stream>
  std::string exchange(Stream& stream, const std::string& request, std::size_t size) {
    std::string reply(size, 0);
    bool sent = false;
    bool received = false;
    std::error_code failed;
    auto done = [&](bool& flag) {
      return [&](std::error_code error, std::size_t) {
        flag = true;
        if (error) failed = error;
      };
    };
    asio::async_write(stream, asio::buffer(request), done(sent));
    asio::async_read(stream, asio::buffer(reply), done(received));
    until([&] { return (sent && received) || failed; });
    if (failed) throw std::system_error(failed);
    return reply;
  }
  template <class Done>
  void until(Done done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      io_.run_one_for(std::chrono::seconds(1));
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("nothing happened for 20 s");
    }
  }

  asio::io_context io_{1};
  std::string unread_;
  rdma::Stream stream_;
  std::optional<asio::ssl::context> context_;
  std::optional<asio::ssl::stream<rdma::Stream&>> tls_;
};

inline std::uint16_t port_of(RunningServer& server, const char* kind) {
  return server.run([kind](Server& s) { return s.port(kind); });
}

}  // namespace weir::kv::testing
