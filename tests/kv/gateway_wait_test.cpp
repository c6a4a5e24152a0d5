// WAIT through a gateway: which node is asked, and what no node can confirm.
#include <gtest/gtest.h>

#include "tests/kv/gateway_cluster.hpp"

namespace weir::kv::testing {
namespace {

using Words = FakeNode::Words;

// A node that has two replicas, and says how many have what a connection asked for.
FakeNode::Answer with_replicas(const char* count = ":2\r\n") {
  return [count](const Words& words) {
    return std::string(words[0] == "WAIT" ? count : words[0] == "PING" ? "+PONG\r\n" : "+OK\r\n");
  };
}

struct GatewayToReplicated : Gateway {
  GatewayToReplicated() {
    first.answers(with_replicas());
    second.answers(with_replicas(":1\r\n"));
  }
};

TEST(GatewayWait, asks_the_node_that_took_the_last_write) {
  GatewayToReplicated gateway;
  gateway.client.send(encode({"SET", "hello", "1"}) + encode({"GET", "foo"}) + encode({"WAIT", "2", "0"}) +
                      encode({"GET", "hello"}));
  EXPECT_EQ(gateway.client.reply(), "+OK\r\n");
  EXPECT_EQ(gateway.client.reply(), "+OK\r\n");
  EXPECT_EQ(gateway.client.reply(), ":2\r\n");
  EXPECT_EQ(gateway.client.reply(), "+OK\r\n");
  EXPECT_EQ(gateway.client.call({"SET", "foo", "1"}), "+OK\r\n");
  EXPECT_EQ(gateway.client.call({"WAIT", "1", "0"}), ":1\r\n");
  EXPECT_EQ(gateway.client.call({"WAIT", "1", "0"}), ":1\r\n") << "once more about the same write";
}

// The node would otherwise count from the beginning of that connection, when nothing was written.
TEST(GatewayWait, says_ping_first_by_a_connection_of_its_own) {
  GatewayToReplicated gateway;
  gateway.client.call({"SET", "hello", "1"});
  gateway.client.call({"WAIT", "2", "100"});
  EXPECT_EQ(gateway.first.requests(),
            (std::vector<Words>{{"SET", "hello", "1"}, {"PING"}, {"WAIT", "2", "100"}}));
  const std::vector<int> by = gateway.first.sources();
  EXPECT_NE(by[0], by[1]);
  EXPECT_EQ(by[1], by[2]);
}

TEST(GatewayWait, holds_up_nobody_else) {
  GatewayToReplicated gateway;
  gateway.first.answers(with_replicas(""));
  gateway.client.call({"SET", "hello", "1"});
  gateway.client.send(encode({"WAIT", "2", "0"}));
  gateway.first.await(3);
  EXPECT_EQ(gateway.server.connect().call({"GET", "hello"}), "+OK\r\n");
  pass_ms(gateway.server, 60'000);
  EXPECT_TRUE(gateway.client.quiet()) << "it may wait for ever";
  gateway.first.say_to(2, ":2\r\n");
  EXPECT_EQ(gateway.client.reply(), ":2\r\n");
}

TEST(GatewayWait, counts_transactions_scripts_and_commands_that_wait_as_writes) {
  const std::vector<std::vector<Words>> rows{
      {{"MULTI"}, {"SET", "hello", "1"}, {"EXEC"}},
      {{"EVAL", "return 1", "1", "hello"}},
      {{"BLPOP", "hello", "0"}},
      {{"WATCH", "hello"}, {"MULTI"}, {"SET", "hello", "1"}, {"EXEC"}}};
  for (const std::vector<Words>& requests : rows) {
    SCOPED_TRACE(requests[0][0]);
    GatewayToReplicated gateway;
    for (const Words& words : requests) gateway.client.call(words);
    EXPECT_EQ(gateway.client.call({"WAIT", "2", "0"}), ":2\r\n");
  }
}

TEST(GatewayWait, says_what_no_single_node_can_confirm) {
  struct Row {
    std::vector<Words> before;
    const char* refusal;
  };
  const std::vector<Row> rows{
      {{}, "-NOTROUTED WAIT: replicas confirm writes, and this connection has written nothing"},
      {{{"GET", "hello"}}, "-NOTROUTED WAIT: replicas confirm writes, and this connection has written"},
      {{{"SET", "hello", "1"}, {"SET", "foo", "1"}},
       "-NOTROUTED WAIT: a node confirms its own writes only, and since its last WAIT"},
      {{{"FLUSHALL"}}, "-NOTROUTED WAIT: a node confirms its own writes only"},
  };
  for (const Row& row : rows) {
    GatewayToReplicated gateway;
    for (const Words& words : row.before) gateway.client.call(words);
    const std::string refused = gateway.client.call({"WAIT", "1", "0"});
    EXPECT_TRUE(refused.starts_with(row.refusal)) << refused;
    EXPECT_EQ(gateway.client.call({"SET", "hello", "1"}), "+OK\r\n");
    EXPECT_EQ(gateway.client.call({"WAIT", "1", "0"}), ":2\r\n") << "what comes after a WAIT counts anew";
  }
}

// A node that was started again has new replicas, and may not have the write.
TEST(GatewayWait, does_not_ask_a_node_whose_connection_has_ended_since) {
  GatewayToReplicated gateway;
  gateway.client.call({"SET", "hello", "1"});
  gateway.first.hang_up(0);
  await(gateway, [](const auto& facts) { return facts.broken_links > 0; });
  const std::string refused = gateway.client.call({"WAIT", "1", "0"});
  EXPECT_TRUE(
      refused.starts_with("-NOTROUTED WAIT: the gateway's connection to the node that took the last "
                          "write has ended since"))
      << refused;
  EXPECT_EQ(gateway.client.call({"SET", "hello", "1"}), "+OK\r\n");
  EXPECT_EQ(gateway.client.call({"WAIT", "1", "0"}), ":2\r\n");
}

TEST(GatewayWait, believes_no_count_if_the_node_refused_the_ping) {
  GatewayToReplicated gateway;
  gateway.first.answers([](const Words& words) {
    return std::string(words[0] == "PING" ? "-NOPERM no\r\n" : words[0] == "WAIT" ? ":2\r\n" : "+OK\r\n");
  });
  gateway.client.call({"SET", "hello", "1"});
  EXPECT_EQ(gateway.client.call({"WAIT", "1", "0"}), "-NOPERM no\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
