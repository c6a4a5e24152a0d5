// A server and a client in one io_context, over each transport in turn.
#pragma once

#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <functional>
#include <stdexcept>

#include "rdma/engine.hpp"
#include "rpc/client.hpp"
#include "rpc/server.hpp"
#include "tests/certificates.hpp"
#include "tests/rdma/test_device.hpp"
#include "tests/rpc/services.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::rpc::testing_support {

// The certificate that `name` shows, and the authority that it trusts.
inline TlsOptions tls_of(const std::string& name, const std::string& trusts = "ca") {
  const test::Certificates& all = test::certificates();
  TlsOptions options;
  if (!name.empty()) {
    options.certificate_file = all.certificate(name);
    options.key_file = all.key(name);
  }
  options.authority_file = all.certificate(trusts);
  options.server_name = "server";
  return options;
}

class RpcTest : public testing::TestWithParam<const char*> {
 protected:
  asio::io_context io{1};
  test::ScratchDirectory folder;
  rdma::Engine* engine = nullptr;
  bool share_receives = false;

  bool over(std::string_view word) const {
    return std::string_view(GetParam()).find(word) != std::string_view::npos;
  }

  void SetUp() override {
    if (!over("rdma")) return;
    auto opened = rdma::Engine::open(io, rdma::testing_support::test_provider());
    ASSERT_TRUE(opened) << opened.error().what;
    engine = *opened;
  }

  TransportOptions transport(const std::string& certificate) const {
    TransportOptions options;
    if (over("tls")) options.tls = tls_of(certificate);
    options.engine = engine;
    options.rdma_channel.shared_receives = share_receives;
    return options;
  }

  // Most tests have one server.
  std::unique_ptr<Server> server;
  std::string address;
  template <auto... F>
  void serve(ServerOptions options = {}) {
    server = make_server(std::move(options));
    server->add<F...>();
    address = listen(*server);
  }
  static ServerOptions limited(const ServerLimits& limits) {
    ServerOptions options;
    options.limits = limits;
    return options;
  }

  std::unique_ptr<Server> make_server(ServerOptions options = {}) {
    options.transport = transport("server");
    return std::make_unique<Server>(io, std::move(options));
  }

  std::string listen(Server& listener) {
    const std::string scheme = GetParam();
    std::string where = scheme + "://";
    if (scheme == "unix")
      where += folder.file("socket");
    else if (over("rdma"))
      where += rdma::testing_support::test_address().address().to_string() + ":0";
    else
      where += "127.0.0.1:0";
    const auto at = listener.listen(where);
    if (!at) throw std::runtime_error(at.error().what);
    return *at;
  }

  ConnectOptions connect_options(ConnectionLimits limits = {}) const {
    ConnectOptions options;
    options.limits = limits;
    options.transport = transport("client");
    return options;
  }

  // Runs `body` with a client until it ends; `server` stays as the test made it.
  void with_client(const std::string& where, std::function<asio::awaitable<void>(Client&)> body,
                   ConnectionLimits limits = {}) {
    run([this, where, body, limits]() -> asio::awaitable<void> {
      ConnectOptions options = connect_options(limits);
      auto client = co_await connect(where, options);
      if (!client) throw std::runtime_error(client.error().what);
      co_await body(*client);
    });
  }

  // `make` stays until its coroutine has ended. Fails after a while, which is for broken code only.
  void run(const std::function<asio::awaitable<void>()>& make) {
    bool ended = false;
    asio::co_spawn(io, make(), [&](const std::exception_ptr& thrown) {
      ended = true;
      if (thrown) std::rethrow_exception(thrown);
    });
    run_until([&] { return ended; });
  }

  void run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (io.stopped()) io.restart();
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("nothing happened in time");
      io.run_one_for(std::chrono::milliseconds(100));
    }
  }
};

inline const auto transports = testing::Values("tcp", "unix", "tls", "rdma", "rdma+tls");
inline std::string transport_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (c == '+') c = '_';
  return name;
}

}  // namespace weir::rpc::testing_support
