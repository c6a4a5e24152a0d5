// An address whose connections tried to reach memory that they had no right to: its requests are rejected.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/link/own_network.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::StreamTest;

// Only an address that is not loopback shuts the door, so the network has one.
class ShutDoor : public StreamTest {
 protected:
  void SetUp() override {
    if (!link::own_network()) GTEST_SKIP() << "the kernel lets this user make no network namespace";
    StreamTest::SetUp();
  }
  std::error_code connect(const Acceptor& acceptor) {
    std::optional<std::error_code> outcome;
    clients.push_back(std::make_unique<Stream>(*engine));
    async_connect(*clients.back(), acceptor.local_endpoint(), StreamSettings{},
                  [&](std::error_code failed) { outcome = failed; });
    run_until([&] { return outcome.has_value(); });
    return *outcome;
  }
  static Endpoint at(const char* address) { return {asio::ip::make_address(address), 0}; }

  std::vector<std::unique_ptr<Stream>> clients;
};

TEST_F(ShutDoor, rejects_requests_from_there) {
  const Endpoint there = at("192.0.2.77");
  Result<Acceptor> acceptor = Acceptor::listen(*engine, there, {.stream = {}, .backlog = 8});
  ASSERT_TRUE(acceptor) << acceptor.error().what;
  EXPECT_FALSE(connect(*acceptor));
  for (unsigned i = 0; i < Trespasses::tries_that_shut; ++i) engine->on_trespass(at("192.0.2.1"), there);
  EXPECT_EQ(connect(*acceptor), Errc::refused);
  EXPECT_EQ(acceptor->rejected(), 1u);
}

}  // namespace
}  // namespace weir::rdma
