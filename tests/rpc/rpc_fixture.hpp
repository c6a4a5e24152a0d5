// A server and a client in one io_context, over each transport in turn, and certificates for those that want
// them.
#pragma once

#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "rdma/engine.hpp"
#include "rpc/client.hpp"
#include "rpc/server.hpp"
#include "tests/rdma/test_device.hpp"
#include "tests/rpc/services.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::rpc::testing_support {

// An empty folder, removed at the end.
class ScratchFolder {
 public:
  std::string file(const std::string& name) const { return directory_.path() + "/" + name; }

 private:
  test::ScratchDirectory directory_;
};

// An authority with a server and a client that it vouches for, and a stranger that another one vouches for.
class Certificates {
 public:
  Certificates() {
    authority("ca");
    authority("other-ca");
    signed_by("server", "ca");
    signed_by("client", "ca");
    signed_by("stranger", "other-ca");
  }
  TlsOptions of(const std::string& name, const std::string& trusts = "ca") const {
    TlsOptions options;
    if (!name.empty()) {
      options.certificate_file = folder_.file(name + ".crt");
      options.key_file = folder_.file(name + ".key");
    }
    options.authority_file = folder_.file(trusts + ".crt");
    options.server_name = "server";
    return options;
  }

 private:
  void authority(const std::string& name) {
    key(name);
    shell("openssl req -x509 -new -key " + folder_.file(name + ".key") + " -subj /CN=" + name +
          " -days 2 -out " + folder_.file(name + ".crt"));
  }
  void signed_by(const std::string& name, const std::string& authority) {
    key(name);
    shell("openssl req -new -key " + folder_.file(name + ".key") + " -subj /CN=" + name + " -out " +
          folder_.file("csr"));
    shell("openssl x509 -req -in " + folder_.file("csr") + " -CA " + folder_.file(authority + ".crt") +
          " -CAkey " + folder_.file(authority + ".key") + " -CAcreateserial -days 2 -out " +
          folder_.file(name + ".crt"));
  }
  void key(const std::string& name) {
    shell("openssl ecparam -name prime256v1 -genkey -noout -out " + folder_.file(name + ".key"));
  }
  static void shell(const std::string& command) {
    if (std::system((command + " >/dev/null 2>&1").c_str()) != 0)
      throw std::runtime_error("failed: " + command);
  }
  ScratchFolder folder_;
};

inline const Certificates& certificates() {
  static const Certificates all;
  return all;
}

class RpcTest : public testing::TestWithParam<const char*> {
 protected:
  asio::io_context io{1};
  ScratchFolder folder;
  rdma::Engine* engine = nullptr;

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
    if (over("tls")) options.tls = certificates().of(certificate);
    options.engine = engine;
    return options;
  }

  std::unique_ptr<Server> make_server(ServerOptions options = {}) {
    options.transport = transport("server");
    return std::make_unique<Server>(io, std::move(options));
  }

  std::string listen(Server& server) {
    const std::string scheme = GetParam();
    std::string where = scheme + "://";
    if (scheme == "unix")
      where += folder.file("socket");
    else if (over("rdma"))
      where += rdma::testing_support::test_address().address().to_string() + ":0";
    else
      where += "127.0.0.1:0";
    const auto address = server.listen(where);
    if (!address) throw std::runtime_error(address.error().what);
    return *address;
  }

  ConnectOptions connect_options(ConnectionLimits limits = {}) const {
    ConnectOptions options;
    options.limits = limits;
    options.transport = transport("client");
    return options;
  }

  // Runs `body` with a client, to its end; `server` stays as the test made it.
  void with_client(const std::string& address, std::function<asio::awaitable<void>(Client&)> body,
                   ConnectionLimits limits = {}) {
    run([this, address, body, limits]() -> asio::awaitable<void> {
      ConnectOptions options = connect_options(limits);
      auto client = co_await connect(address, options);
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
