// A server is killed during calls: each call ends, with an error that says that it may have run.
#include "tests/rpc/chaos/journal.hpp"
#include "tests/rpc/chaos/server_process.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

class KilledServerChaosTest : public testing_support::RpcTest {};

TEST_P(KilledServerChaosTest, killed_mid_call_every_pending_call_ends_as_lost) {
  constexpr int calls = 200;
  const std::string where =
      over("unix") ? "unix://" + folder.file("socket") : std::string(GetParam()) + "://127.0.0.1:0";
  chaos::ServerProcess process(io, where, folder.file("journal"));
  int ended = 0, lost = 0;
  std::optional<Client> client;
  run([&]() -> asio::awaitable<void> {
    co_await process.start();
    ConnectOptions options = connect_options();
    auto made = co_await connect(process.address(), options);
    if (!made) throw std::runtime_error(made.error().what);
    client.emplace(std::move(*made));
    for (std::uint64_t i = 0; i < calls; ++i)
      asio::co_spawn(io, client->call<chaos::hang>(i),
                     [&](const std::exception_ptr&, const Result<std::uint64_t>& result) {
                       ++ended;
                       lost += !result && result.error().code == Errc::connection_lost ? 1 : 0;
                     });
    // Answered after the calls before it were read.
    const auto answered = co_await client->call<chaos::append>(std::uint64_t{calls});
    EXPECT_TRUE(answered);
  });
  EXPECT_EQ(ended, 0);
  process.kill();
  run_until([&] { return ended == calls; });
  EXPECT_EQ(lost, calls);
  EXPECT_FALSE(client->is_open());
  EXPECT_EQ(process.journal().size(), std::size_t{calls} + 1);
}

INSTANTIATE_TEST_SUITE_P(Over, KilledServerChaosTest, testing::Values("tcp", "unix", "rdma"),
                         testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
