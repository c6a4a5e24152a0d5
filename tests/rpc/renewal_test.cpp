// A server whose certificates are renewed while it serves.
#include <filesystem>
#include <fstream>

#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

using namespace testing_support;

class Renewal : public RpcTest {
 protected:
  void SetUp() override {
    RpcTest::SetUp();
    show("server");
    ServerOptions options;
    options.transport = transport("server");
    options.transport.tls.certificate_file = folder.file("live.crt");
    options.transport.tls.key_file = folder.file("live.key");
    server = std::make_unique<Server>(io, std::move(options));
    server->add<shop::add>();
    address = listen(*server);
  }
  // Puts these in place of the files that the server was given.
  void show(const std::string& certificate) {
    const test::Certificates& all = test::certificates();
    constexpr auto over = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(all.certificate(certificate), folder.file("live.crt"), over);
    std::filesystem::copy_file(all.key(certificate), folder.file("live.key"), over);
  }
  static asio::awaitable<bool> works(Client& client) {
    co_return (co_await client.call<shop::add>(2, 3)).value_or(0) == 5;
  }
  // Whether a client that knows only this authority finds a server of this name.
  asio::awaitable<bool> finds(std::string name, std::string authority) {
    ConnectOptions options = connect_options();
    options.transport.tls = tls_of("client", authority);
    options.transport.tls.server_name = name;
    auto client = co_await connect(address, options);
    if (!client) co_return false;
    co_return co_await works(*client);
  }
};

TEST_P(Renewal, is_seen_by_new_connections_and_ends_none) {
  run([this]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options();
    auto old = co_await connect(address, options);
    EXPECT_TRUE(old && co_await works(*old));
    show("stranger");
    EXPECT_TRUE(co_await finds("server", "ca")) << "nobody has asked for a renewal";
    EXPECT_TRUE(server->renew_certificates());
    EXPECT_TRUE(co_await finds("stranger", "other-ca"));
    EXPECT_FALSE(co_await finds("server", "ca"));
    EXPECT_TRUE(old && co_await works(*old));
  });
}

TEST_P(Renewal, from_files_that_do_not_go_together_changes_nothing) {
  struct Row {
    std::string file, contents;
  };
  run([this]() -> asio::awaitable<void> {
    const Row rows[] = {{"live.crt", "no certificate"}, {"live.key", "no key"}};
    for (const Row& row : rows) {
      show("server");
      std::ofstream(folder.file(row.file)) << row.contents;
      const Result<void> renewed = server->renew_certificates();
      const std::string why = renewed ? "" : renewed.error().what;
      EXPECT_NE(why.find(row.file), std::string::npos) << why;
      EXPECT_TRUE(co_await finds("server", "ca"));
    }
    show("server");
    std::filesystem::copy_file(test::certificates().key("stranger"), folder.file("live.key"),
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_FALSE(server->renew_certificates()) << "the key of another certificate";
    EXPECT_TRUE(co_await finds("server", "ca"));
  });
}

INSTANTIATE_TEST_SUITE_P(Over, Renewal, testing::Values("tls", "rdma+tls"), transport_name);

}  // namespace
}  // namespace weir::rpc
