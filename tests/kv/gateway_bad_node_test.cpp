// A node of the cluster misbehaves: clients of the gateway that ask other nodes do not notice, and those that
// asked it are told, and served when it behaves again.
#include <gtest/gtest.h>

#include <string>

#include "tests/kv/gateway_cluster.hpp"

namespace weir::kv::testing {
namespace {

std::string repeated(std::string_view text, std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) all += text;
  return all;
}

enum class Then : std::uint8_t { nothing, hang_up };

struct BadNode {
  const char* name;
  std::string says;
  std::string says_on = {};  // again and again
  Then then = Then::nothing;
  std::string told = "-NODEDOWN ";  // how the reply of the client that asked it begins
};

class GatewayBadNode : public ::testing::TestWithParam<BadNode> {
 protected:
  // It may be the last that the broken link is heard of.
  std::string ask_again(WireClient& client) {
    const std::string reply = client.call({"GET", "hello"});
    return reply.starts_with("-NODEDOWN") ? client.call({"GET", "hello"}) : reply;
  }

  Gateway gateway;
  WireClient other = gateway.server.connect();
};

TEST_P(GatewayBadNode, is_noticed_by_nobody_who_did_not_ask_it) {
  constexpr int rounds = 40;
  const BadNode& bad = GetParam();
  gateway.server.stop_clock();
  gateway.first.answers(always(""));
  gateway.second.answers(always(bulk("two")));
  gateway.client.send(encode({"GET", "hello"}));
  gateway.first.await(1);
  gateway.first.say(bad.says);
  for (int i = 0; i < rounds; ++i) {
    EXPECT_EQ(other.call({"GET", "foo"}), bulk("two"));
    gateway.first.say(bad.says_on);
  }
  if (bad.then == Then::hang_up) gateway.first.hang_up(0);
  pass_ms(gateway.server, 6000);
  const std::string told = gateway.client.reply();
  EXPECT_TRUE(told.starts_with(bad.told)) << told.substr(0, 100);
  EXPECT_EQ(other.call({"GET", "foo"}), bulk("two"));
  gateway.first.answers(always(bulk("one")));
  EXPECT_EQ(ask_again(gateway.client), bulk("one"));
  EXPECT_EQ(ask_again(other), bulk("one"));
}

constexpr std::size_t much = 100'000;

INSTANTIATE_TEST_SUITE_P(
    Cases, GatewayBadNode,
    ::testing::Values(BadNode{"says_nothing", ""}, BadNode{"says_nonsense", "\x01\x02?\r\n"},
                      BadNode{"says_nonsense_without_end", "", repeated("nonsense ", much)},
                      BadNode{"says_half", "$100\r\nhalf"},
                      BadNode{"says_half_and_hangs_up", "$100\r\nhalf", "", Then::hang_up},
                      BadNode{"hangs_up", "", "", Then::hang_up},
                      BadNode{"says_a_line_without_end", "+", repeated("x", much)},
                      BadNode{"says_a_text_without_end", "$536870912\r\n", repeated("x", much)},
                      BadNode{"counts_without_end", "*4294967295\r\n", repeated(":1\r\n", much)},
                      BadNode{"nests_without_end", "", repeated("*1\r\n", much)},
                      BadNode{"replies_without_end", "+one\r\n", repeated("+more\r\n", much), Then::nothing,
                              "+one\r\n"},
                      BadNode{"pushes_without_end", "", repeated(">2\r\n+a\r\n+b\r\n", much)}),
    [](const auto& instance) { return instance.param.name; });

// The first thing that each connection asks.
TEST(GatewayBadNode, may_not_greet_without_end) {
  Gateway gateway;
  await(gateway, [](const cluster::GatewayFacts& facts) { return facts.map_reads > 0; });
  gateway.server.stop_clock();
  gateway.second.answers(always(bulk("two")));
  gateway.first.hello("*4294967295\r\n" + repeated(":1\r\n", 1 << 20));
  gateway.client.send(encode({"GET", "hello"}));
  await(gateway, [](const cluster::GatewayFacts& facts) { return facts.broken_links > 0; });
  EXPECT_EQ(gateway.server.connect().call({"GET", "foo"}), bulk("two"));
}

TEST(GatewayBadNode, may_not_describe_the_cluster_without_end) {
  FakeNode node;
  node.slots("*4294967295\r\n" + repeated(":1\r\n", 20 << 20));
  RunningServer server(gateway_to(node));
  while (server.run([](Server& s) { return s.gateway->facts().map_failures; }) == 0)
    std::this_thread::yield();
  EXPECT_EQ(server.connect().call({"PING"}), "+PONG\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
