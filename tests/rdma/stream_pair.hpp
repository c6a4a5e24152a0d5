// Two connected streams in one io_context, and a way to run it until a condition holds.
#pragma once

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "rdma/acceptor.hpp"
#include "rdma/engine.hpp"
#include "rdma/stream.hpp"
#include "tests/rdma/test_device.hpp"

namespace weir::rdma::testing_support {

class StreamTest : public testing::Test {
 protected:
  asio::io_context io{1};
  Engine* engine = nullptr;

  void SetUp() override {
    Result<Engine*> opened = Engine::open(io, test_provider());
    ASSERT_TRUE(opened) << opened.error().what;
    engine = *opened;
  }

  // Runs handlers until `done`; fails the test after `limit`, which only broken code reaches.
  void run_until(const std::function<bool()>& done, std::chrono::seconds limit = std::chrono::seconds(60)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      if (io.stopped()) io.restart();
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("nothing happened in time");
      io.run_one_for(std::chrono::milliseconds(100));
    }
  }

  Acceptor listen(const StreamSettings& settings = {}, std::uint32_t backlog = 511) {
    Result<Acceptor> acceptor =
        Acceptor::listen(*engine, test_address(), {.stream = settings, .backlog = backlog});
    if (!acceptor) throw std::runtime_error(acceptor.error().what);
    return std::move(*acceptor);
  }

  std::pair<Stream, Stream> connect_pair(const StreamSettings& client_settings = {},
                                         const StreamSettings& server_settings = {}) {
    Acceptor acceptor = listen(server_settings);
    return connect_through(acceptor, client_settings);
  }

  std::pair<Stream, Stream> connect_through(Acceptor& acceptor, const StreamSettings& settings = {}) {
    return connect_ends<Stream>(acceptor, settings);
  }

  // Client end, server end: two streams, or two channels.
  template <typename End>
  std::pair<End, End> connect_ends(auto& acceptor, const auto& settings) {
    End client(*engine);
    std::optional<End> server;
    bool connected = false;
    acceptor.async_accept([&](std::error_code failed, End accepted) {
      if (failed) throw std::system_error(failed, "accept");
      server.emplace(std::move(accepted));
    });
    async_connect(client, acceptor.local_endpoint(), settings, [&](std::error_code failed) {
      if (failed) throw std::runtime_error("connect: " + failed.message() + ": " + client.error().what);
      connected = true;
    });
    run_until([&] { return connected && server.has_value(); });
    return {std::move(client), std::move(*server)};
  }
};

}  // namespace weir::rdma::testing_support
