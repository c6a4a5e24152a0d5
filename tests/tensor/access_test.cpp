// A hub with a token, over both transports: what peers with it, without it and with another one get.
#include <gtest/gtest.h>

#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor {
namespace {

using testing_support::must;
using testing_support::numbers;
using testing_support::publish;
using testing_support::test_provider;
using testing_support::values;
using testing_support::view_of;

struct Access : testing::TestWithParam<const char*> {
  std::unique_ptr<Hub> hub_with(std::string token) const {
    const std::string host = rdma::testing_support::test_address().address().to_string();
    HubSettings settings{.push = {.names = "*"}};
    settings.access.token = std::move(token);
    auto hub = must(Hub::listen(GetParam() + host + ":0", test_provider(), settings));
    publish(*hub, "a", numbers(100, 7));
    return hub;
  }
  static Result<std::unique_ptr<Peer>> peer_with(const Hub& hub, std::string token) {
    return Peer::connect(hub.address(), test_provider(), {.token = std::move(token)});
  }
};

TEST_P(Access, peers_with_the_token_are_served) {
  const auto hub = hub_with("secret");
  const auto peer = must(peer_with(*hub, "secret"));
  EXPECT_EQ(values(must(peer->fetch("a"))), *numbers(100, 7));
  EXPECT_EQ(must(peer->push("b", view_of(numbers(100, 8)))), 1U);
  EXPECT_EQ(peer->generation(), hub->generation());
}

TEST_P(Access, peers_without_it_get_nothing) {
  const auto hub = hub_with("secret");
  const auto peer = must(peer_with(*hub, ""));
  const auto fetched = peer->fetch("a");
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, Errc::refused) << fetched.error().what;
  EXPECT_NE(fetched.error().what.find("token"), std::string::npos) << fetched.error().what;
  EXPECT_EQ(peer->list().error().code, Errc::refused);
  EXPECT_EQ(peer->push("b", view_of(numbers(100, 8))).error().code, Errc::refused);
  EXPECT_EQ(hub->get("b").error().code, Errc::not_published);
  EXPECT_EQ(hub->stats().refused, 3U);
}

TEST_P(Access, ends_with_different_tokens_do_not_connect) {
  for (const char* hubs : {"secret", ""}) {
    const auto hub = hub_with(hubs);
    const auto peer = peer_with(*hub, "other");
    ASSERT_FALSE(peer);
    EXPECT_EQ(peer.error().code, Errc::refused) << peer.error().what;
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Access, testing::Values("rdma://", "tcp://"),
                         [](const auto& row) { return std::string(row.param).substr(0, 3); });

}  // namespace
}  // namespace weir::tensor
