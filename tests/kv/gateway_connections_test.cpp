// Commands that need more than a reply, through a gateway: WATCH, blocking commands, subscriptions, and
// commands to all nodes.
#include <gtest/gtest.h>

#include "tests/kv/gateway_cluster.hpp"

namespace weir::kv::testing {
namespace {

using Words = FakeNode::Words;

std::string push(const std::vector<std::string>& texts) {
  std::string bytes = ">" + std::to_string(texts.size()) + "\r\n";
  for (const std::string& text : texts) bytes += bulk(text);
  return bytes;
}
std::string confirmation(char kind, std::string_view what, std::string_view topic, int count) {
  return kind + ("3\r\n" + bulk(what)) + bulk(topic) + ":" + std::to_string(count) + "\r\n";
}
std::string message(std::string_view channel, std::string_view text) {
  return "*3\r\n" + bulk("message") + bulk(channel) + bulk(text);
}

// The requests that arrived there, without the gateway's PINGs that check whether a node is alive.
std::vector<Words> asked(FakeNode& node) {
  std::vector<Words> requests = node.requests();
  std::erase(requests, Words{"PING"});
  return requests;
}

// Replies as a Redis node does to the requests of these tests.
FakeNode::Answer like_redis() {
  return [](const Words& words) {
    const std::string& name = words[0];
    if (name == "EXEC") return std::string("*1\r\n:1\r\n");
    if (name == "INCR") return std::string("+QUEUED\r\n");
    if (name == "PING") return std::string("+PONG\r\n");
    if (name == "GET") return bulk("value");
    if (name == "BLPOP") return std::string();
    if (name.ends_with("SUBSCRIBE")) {
      std::string verb = name;
      std::ranges::transform(verb, verb.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
      return confirmation('>', verb, words[1], 1);
    }
    return std::string("+OK\r\n");
  };
}

struct LiveGateway : Gateway {
  explicit LiveGateway(Settings settings = {}) : Gateway(std::move(settings)) {
    first.answers(like_redis());
    second.answers(like_redis());
  }
};

TEST(GatewayWatch, keeps_watch_and_exec_on_a_connection_of_the_clients_own) {
  LiveGateway gateway;
  gateway.client.call({"GET", "hello"});
  EXPECT_EQ(gateway.client.call({"WATCH", "hello"}), "+OK\r\n");
  EXPECT_EQ(gateway.client.call({"GET", "hello"}), bulk("value"));
  gateway.client.send(encode({"MULTI"}) + encode({"INCR", "hello"}) + encode({"EXEC"}) +
                      encode({"GET", "hello"}));
  for (const char* reply : {"+OK\r\n", "+QUEUED\r\n", "*1\r\n:1\r\n", "$5\r\nvalue\r\n"})
    EXPECT_EQ(gateway.client.reply(), reply);
  const std::vector<Words> expected{{"GET", "hello"},  {"WATCH", "hello"}, {"GET", "hello"}, {"MULTI"},
                                    {"INCR", "hello"}, {"EXEC"},           {"GET", "hello"}};
  EXPECT_EQ(gateway.first.requests(), expected);
  const std::vector<int> by = gateway.first.sources();
  EXPECT_NE(by[1], by[0]);
  EXPECT_EQ((std::vector<int>{by[3], by[4], by[5]}), (std::vector<int>{by[1], by[1], by[1]}));
  EXPECT_EQ((std::vector<int>{by[2], by[6]}), (std::vector<int>{by[0], by[0]}));
  EXPECT_EQ(facts(gateway).own_links, 0u);
  EXPECT_EQ(facts(gateway).idle_own_links, 1u) << "it is clean, and kept for the next one";
  gateway.client.call({"WATCH", "hello"});
  EXPECT_EQ(gateway.first.sources().back(), by[1]);
}

TEST(GatewayWatch, aborts_a_transaction_whose_watch_was_lost_with_its_connection) {
  LiveGateway gateway;
  gateway.client.call({"WATCH", "hello"});
  gateway.first.hang_up(0);
  await(gateway, [](const auto& facts) { return facts.own_links == 0; });
  EXPECT_EQ(gateway.client.call({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(gateway.client.call({"INCR", "hello"}), "+QUEUED\r\n");
  EXPECT_EQ(gateway.client.call({"EXEC"}), "*-1\r\n");
  EXPECT_EQ(gateway.first.requests().size(), 1u) << "nothing of it ran";
}

TEST(GatewayWatch, aborts_a_transaction_whose_slot_moved_and_does_not_repeat_it_elsewhere) {
  LiveGateway gateway;
  const std::string moved = "-MOVED 866 " + gateway.second.address() + "\r\n";
  gateway.client.call({"WATCH", "hello"});
  gateway.first.answers([&](const Words& words) {
    return words[0] == "MULTI"  ? std::string("+OK\r\n")
           : words[0] == "EXEC" ? std::string("-EXECABORT Transaction discarded\r\n")
                                : moved;
  });
  for (FakeNode* node : {&gateway.first, &gateway.second})
    node->slots(two_nodes(gateway.second.port(), gateway.second.port()));
  gateway.client.send(encode({"MULTI"}) + encode({"INCR", "hello"}) + encode({"EXEC"}));
  for (const char* reply : {"+OK\r\n", "+QUEUED\r\n", "*-1\r\n"}) EXPECT_EQ(gateway.client.reply(), reply);
  EXPECT_TRUE(gateway.second.requests().empty());
  EXPECT_EQ(gateway.client.call({"WATCH", "hello"}), "+OK\r\n");
  EXPECT_EQ(gateway.second.requests().size(), 1u) << "the next attempt goes to the new node";
}

TEST(GatewayWatch, follows_the_first_watch_to_where_the_slot_is) {
  LiveGateway gateway;
  gateway.first.answers(always("-MOVED 866 " + gateway.second.address() + "\r\n"));
  EXPECT_EQ(gateway.client.call({"WATCH", "hello"}), "+OK\r\n");
  EXPECT_EQ(gateway.second.requests(), (std::vector<Words>{{"WATCH", "hello"}}));
}

TEST(GatewayWatch, does_not_watch_a_slot_that_is_on_its_way) {
  LiveGateway gateway;
  gateway.first.answers(always("-ASK 866 " + gateway.second.address() + "\r\n"));
  EXPECT_TRUE(gateway.client.call({"WATCH", "hello"}).starts_with("-TRYAGAIN slot 866 is on its way"));
  EXPECT_EQ(facts(gateway).own_links, 0u);
}

TEST(GatewayWatch, refuses_several_slots) {
  LiveGateway gateway;
  const std::string refused = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
  EXPECT_EQ(gateway.client.call({"WATCH", "hello", "foo"}), refused);
  EXPECT_EQ(gateway.client.call({"WATCH", "hello"}), "+OK\r\n");
  EXPECT_EQ(gateway.client.call({"WATCH", "foo"}), refused);
  gateway.client.call({"MULTI"});
  EXPECT_EQ(gateway.client.call({"INCR", "foo"}), refused);
  EXPECT_TRUE(gateway.client.call({"EXEC"}).starts_with("-EXECABORT"));
}

TEST(GatewayWatch, gives_the_connection_up_when_it_is_over) {
  for (const std::vector<std::vector<std::string>>& end :
       {std::vector<std::vector<std::string>>{{"UNWATCH"}}, {{"MULTI"}, {"DISCARD"}}, {{"RESET"}}}) {
    LiveGateway gateway;
    gateway.client.call({"WATCH", "hello"});
    EXPECT_EQ(facts(gateway).own_links, 1u);
    for (const auto& words : end) gateway.client.call(words);
    EXPECT_EQ(facts(gateway).own_links, 0u) << end.back()[0];
    EXPECT_EQ(facts(gateway).idle_own_links, 0u) << "the node still watches on it";
  }
}

TEST(GatewayWaiting, holds_up_nobody_but_the_client_that_waits) {
  LiveGateway gateway;
  gateway.client.send(encode({"BLPOP", "hello", "0"}) + encode({"GET", "hello"}));
  gateway.first.await(1);
  WireClient other = gateway.server.connect();
  EXPECT_EQ(other.call({"GET", "hello"}), bulk("value"));
  pass_ms(gateway.server, 60'000);
  EXPECT_TRUE(gateway.client.quiet()) << "it may wait for ever";
  gateway.first.say_to(0, "*2\r\n" + bulk("hello") + bulk("x"));
  EXPECT_EQ(gateway.client.reply(), "*2\r\n" + bulk("hello") + bulk("x"));
  EXPECT_EQ(gateway.client.reply(), bulk("value"));
  EXPECT_EQ(facts(gateway).own_links, 0u);
}

TEST(GatewayWaiting, leaves_the_nodes_queue_when_the_client_goes) {
  LiveGateway gateway;
  gateway.client.send(encode({"BLPOP", "hello", "0"}));
  gateway.first.await(1);
  const std::size_t before = gateway.first.connections();
  gateway.client.close();
  while (gateway.first.connections() >= before) std::this_thread::yield();
  EXPECT_EQ(facts(gateway).own_links, 0u);
}

TEST(GatewayWaiting, is_ended_at_the_node_by_client_unblock) {
  LiveGateway gateway;
  gateway.first.hello("*4\r\n" + bulk("proto") + ":2\r\n" + bulk("id") + ":77\r\n");
  const std::string id = gateway.client.call({"CLIENT", "ID"});
  gateway.client.send(encode({"BLPOP", "hello", "0"}));
  gateway.first.await(1);
  gateway.first.answers(always(":1\r\n"));
  WireClient other = gateway.server.connect();
  const std::string number = id.substr(1, id.size() - 3);
  EXPECT_EQ(other.call({"CLIENT", "UNBLOCK", number, "ERROR"}), ":1\r\n");
  EXPECT_EQ(asked(gateway.first).back(), (Words{"CLIENT", "UNBLOCK", "77", "ERROR"}));
  EXPECT_EQ(other.call({"CLIENT", "UNBLOCK", number, "SOON"}),
            "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n");
  gateway.first.say_to(0, "*-1\r\n");
  EXPECT_EQ(gateway.client.reply(), "*-1\r\n");
  EXPECT_EQ(other.call({"CLIENT", "UNBLOCK", number}), ":0\r\n") << "it waits no more";
}

TEST(GatewayWaiting, is_counted_among_the_blocked_clients) {
  LiveGateway gateway;
  WireClient other = gateway.server.connect();
  EXPECT_NE(other.call({"INFO", "clients"}).find("blocked_clients:0\r\n"), std::string::npos);
  gateway.client.send(encode({"BLPOP", "hello", "0"}));
  gateway.first.await(1);
  EXPECT_NE(other.call({"INFO", "clients"}).find("blocked_clients:1\r\n"), std::string::npos);
}

TEST(GatewayWaiting, leaves_it_when_the_client_only_ends_its_side) {
  LiveGateway gateway;
  gateway.client.send(encode({"BLPOP", "hello", "0"}));
  gateway.first.await(1);
  gateway.client.end_sending();
  EXPECT_EQ(gateway.client.until_closed(), "");
  EXPECT_EQ(facts(gateway).own_links, 0u);
}

TEST(GatewayWaiting, has_so_many_connections_and_no_more) {
  Settings settings;
  settings.cluster_gateway_own_links = 1;
  LiveGateway gateway(std::move(settings));
  gateway.client.send(encode({"BLPOP", "hello", "0"}));
  gateway.first.await(1);
  WireClient other = gateway.server.connect();
  const std::string refused = other.call({"BLPOP", "hello", "0"});
  EXPECT_TRUE(refused.starts_with("-NOTROUTED BLPOP needs a connection of its own to a node, and all 1"))
      << refused;
  EXPECT_EQ(other.call({"GET", "hello"}), bulk("value"));
  gateway.client.close();
  await(gateway, [](const auto& facts) { return facts.own_links == 0; });
  EXPECT_EQ(other.call({"WATCH", "hello"}), "+OK\r\n");
}

TEST(GatewayWaiting, has_so_many_connections_for_one_user) {
  Settings settings;
  settings.cluster_gateway_own_links_per_user = 1;
  LiveGateway gateway(std::move(settings));
  WireClient other = gateway.server.connect();
  other.call({"ACL", "SETUSER", "second", "on", "nopass", "+@all", "~*"});
  gateway.client.send(encode({"BLPOP", "hello", "0"}));
  gateway.first.await(1);
  const std::string refused = other.call({"BLPOP", "hello", "0"});
  EXPECT_TRUE(
      refused.starts_with("-NOTROUTED BLPOP needs a connection of its own to a node, and the clients "
                          "of user default have all 1 that cluster-gateway-own-links-per-user"))
      << refused;
  other.call({"AUTH", "second", "any"});
  EXPECT_EQ(other.call({"WATCH", "hello"}), "+OK\r\n");
  EXPECT_EQ(facts(gateway).own_links, 2u);
  EXPECT_EQ(other.call({"UNWATCH"}), "+OK\r\n");
  gateway.client.close();
  await(gateway, [](const auto& facts) { return facts.own_links == 0; });
  other.call({"AUTH", "default", "any"});
  EXPECT_EQ(other.call({"WATCH", "hello"}), "+OK\r\n");
}

TEST(GatewayWaiting, is_told_when_the_node_dies) {
  LiveGateway gateway;
  gateway.client.send(encode({"BLPOP", "hello", "0"}));
  gateway.first.await(1);
  gateway.first.die();
  const std::string lost = gateway.client.reply();
  EXPECT_TRUE(lost.starts_with("-NODEDOWN " + gateway.first.address())) << lost;
  EXPECT_NE(lost.find("may have run"), lost.npos);
}

TEST(GatewayWaiting, is_told_when_the_node_falls_silent) {
  LiveGateway gateway;
  gateway.client.send(encode({"BLPOP", "hello", "0"}));
  gateway.first.await(1);
  gateway.first.answers(always(""));
  pass_ms(gateway.server, 2000);
  gateway.first.await(2);
  EXPECT_EQ(gateway.first.requests()[1], (Words{"PING"})) << "asked by the shared connection";
  WireClient other = gateway.server.connect();
  EXPECT_EQ(other.call({"GET", "foo"}), bulk("value"));
  pass_ms(gateway.server, 6000);
  const std::string lost = gateway.client.reply();
  EXPECT_TRUE(lost.starts_with("-NODEDOWN " + gateway.first.address() + ": it has not answered")) << lost;
}

TEST(GatewayWaiting, waits_where_its_slot_has_moved_to) {
  for (const bool once : {false, true}) {
    LiveGateway gateway;
    gateway.client.send(encode({"BLPOP", "hello", "0"}));
    gateway.first.await(1);
    gateway.first.say_to(0, (once ? "-ASK 866 " : "-MOVED 866 ") + gateway.second.address() + "\r\n");
    const Words blpop{"BLPOP", "hello", "0"};
    const std::vector<Words> expected =
        once ? std::vector<Words>{{"ASKING"}, blpop} : std::vector<Words>{blpop};
    while (asked(gateway.second).size() < expected.size()) std::this_thread::yield();
    EXPECT_EQ(asked(gateway.second), expected);
    gateway.second.say_to(0, "*-1\r\n");
    EXPECT_EQ(gateway.client.reply(), "*-1\r\n");
  }
}

TEST(GatewayWaiting, does_not_wait_within_a_transaction) {
  LiveGateway gateway;
  gateway.first.answers(
      [](const Words& words) { return std::string(words[0] == "EXEC" ? "*1\r\n*-1\r\n" : "+OK\r\n"); });
  gateway.client.call({"MULTI"});
  EXPECT_EQ(gateway.client.call({"BLPOP", "hello", "0"}), "+QUEUED\r\n");
  EXPECT_EQ(gateway.client.call({"EXEC"}), "*1\r\n*-1\r\n");
  EXPECT_EQ(facts(gateway).idle_own_links + facts(gateway).own_links, 0u);
}

TEST(GatewaySubscriptions, are_confirmed_when_the_node_has_confirmed_them) {
  LiveGateway gateway;
  gateway.first.answers(always(""));
  gateway.second.answers(always(""));
  gateway.client.send(encode({"SUBSCRIBE", "news"}));
  while (gateway.first.requests().size() + gateway.second.requests().size() == 0) std::this_thread::yield();
  FakeNode& node = gateway.first.requests().empty() ? gateway.second : gateway.first;
  EXPECT_TRUE(gateway.client.quiet());
  node.say(confirmation('>', "subscribe", "news", 1));
  EXPECT_EQ(gateway.client.reply(), confirmation('*', "subscribe", "news", 1));
  node.say(push({"message", "news", "a"}) + push({"message", "other", "x"}) + push({"message", "news", "b"}));
  EXPECT_EQ(gateway.client.reply(), message("news", "a"));
  EXPECT_EQ(gateway.client.reply(), message("news", "b"));
}

// The node with the gateway's subscriptions to channels and patterns.
FakeNode& node_of_channels(Gateway& gateway) {
  const auto subscribes = [](const Words& words) { return words[0] == "SUBSCRIBE"; };
  return std::ranges::any_of(gateway.first.requests(), subscribes) ? gateway.first : gateway.second;
}

TEST(GatewaySubscriptions, are_shared_by_clients_and_end_with_the_last) {
  LiveGateway gateway;
  WireClient other = gateway.server.connect();
  other.call({"HELLO", "3"});
  EXPECT_EQ(gateway.client.call({"SUBSCRIBE", "news"}), confirmation('*', "subscribe", "news", 1));
  EXPECT_EQ(other.call({"SUBSCRIBE", "news"}), confirmation('>', "subscribe", "news", 1));
  FakeNode& node = node_of_channels(gateway);
  node.say(push({"message", "news", "a"}));
  EXPECT_EQ(gateway.client.reply(), message("news", "a"));
  EXPECT_EQ(other.reply(), push({"message", "news", "a"}));
  EXPECT_EQ(gateway.client.call({"UNSUBSCRIBE"}), confirmation('*', "unsubscribe", "news", 0));
  EXPECT_EQ(asked(node), (std::vector<Words>{{"SUBSCRIBE", "news"}}));
  other.close();
  while (asked(node).size() < 2) std::this_thread::yield();
  EXPECT_EQ(asked(node).back(), (Words{"UNSUBSCRIBE", "news"}));
  EXPECT_EQ(facts(gateway).topics, 0u);
  EXPECT_EQ(gateway.client.call({"GET", "hello"}), bulk("value"));
}

TEST(GatewaySubscriptions, take_patterns_and_several_topics_at_once) {
  LiveGateway gateway;
  gateway.client.send(encode({"SUBSCRIBE", "a", "b", "a"}) + encode({"PSUBSCRIBE", "n*"}));
  for (const auto& [topic, count] : {std::pair("a", 1), {"b", 2}, {"a", 2}})
    EXPECT_EQ(gateway.client.reply(), confirmation('*', "subscribe", topic, count));
  EXPECT_EQ(gateway.client.reply(), confirmation('*', "psubscribe", "n*", 3));
  node_of_channels(gateway).say(push({"pmessage", "n*", "news", "x"}));
  EXPECT_EQ(gateway.client.reply(), "*4\r\n" + bulk("pmessage") + bulk("n*") + bulk("news") + bulk("x"));
}

TEST(GatewaySubscriptions, are_refused_as_the_node_refuses_them) {
  LiveGateway gateway;
  gateway.first.answers(always("-NOPERM no\r\n"));
  gateway.second.answers(always("-NOPERM no\r\n"));
  EXPECT_EQ(gateway.client.call({"SUBSCRIBE", "news"}), "-NOPERM no\r\n");
  EXPECT_EQ(facts(gateway).topics, 0u);
  gateway.first.answers(like_redis());
  gateway.second.answers(like_redis());
  EXPECT_EQ(gateway.client.call({"SUBSCRIBE", "news"}), confirmation('*', "subscribe", "news", 1));
}

TEST(GatewaySubscriptions, end_with_an_error_when_the_node_dies) {
  LiveGateway gateway;
  WireClient other = gateway.server.connect();
  gateway.client.call({"SUBSCRIBE", "news"});
  FakeNode& node = node_of_channels(gateway);
  node.hang_up(node.requests().size() - 1);
  const std::string end = gateway.client.until_closed();
  EXPECT_TRUE(end.starts_with("-NODEDOWN " + node.address())) << end;
  EXPECT_NE(end.find("messages may have been missed"), end.npos) << end;
  EXPECT_EQ(other.call({"GET", "hello"}), bulk("value"));
  EXPECT_EQ(other.call({"SUBSCRIBE", "news"}), confirmation('*', "subscribe", "news", 1));
}

TEST(GatewaySubscriptions, end_with_an_error_when_the_node_falls_silent) {
  LiveGateway gateway;
  gateway.client.call({"SUBSCRIBE", "news"});
  FakeNode& node = node_of_channels(gateway);
  node.answers(always(""));
  const std::size_t before = node.requests().size();
  pass_ms(gateway.server, 2000);
  node.await(before + 1);
  pass_ms(gateway.server, 6000);
  const std::string end = gateway.client.until_closed();
  EXPECT_TRUE(end.starts_with("-NODEDOWN " + node.address() + ": it has not answered")) << end;
}

TEST(GatewaySubscriptions, of_shards_are_at_the_node_of_the_slot_and_end_when_it_moves) {
  LiveGateway gateway;
  EXPECT_EQ(gateway.client.call({"SSUBSCRIBE", "foo"}), confirmation('*', "ssubscribe", "foo", 1));
  EXPECT_EQ(asked(gateway.second), (std::vector<Words>{{"SSUBSCRIBE", "foo"}}));
  gateway.second.say(push({"smessage", "foo", "x"}) + confirmation('>', "sunsubscribe", "foo", 0));
  EXPECT_EQ(gateway.client.reply(), "*3\r\n" + bulk("smessage") + bulk("foo") + bulk("x"));
  EXPECT_EQ(gateway.client.reply(), confirmation('*', "sunsubscribe", "foo", 0));
  gateway.second.answers(always("-MOVED 12182 " + gateway.first.address() + "\r\n"));
  EXPECT_EQ(gateway.client.call({"SSUBSCRIBE", "foo"}), confirmation('*', "ssubscribe", "foo", 1));
  EXPECT_EQ(asked(gateway.first), (std::vector<Words>{{"SSUBSCRIBE", "foo"}}));
}

TEST(GatewaySubscriptions, close_a_client_that_does_not_read_and_no_other) {
  Settings settings;
  settings.pubsub_output = {1 << 20, 0, 0};
  LiveGateway gateway(std::move(settings));
  WireClient other = gateway.server.connect();
  gateway.client.call({"SUBSCRIBE", "news"});
  other.call({"SUBSCRIBE", "news"});
  FakeNode& node = node_of_channels(gateway);
  const std::string text(100'000, 'x');
  for (int i = 0; i < 60; ++i) {
    node.say(push({"message", "news", text}));
    ASSERT_EQ(other.reply(), message("news", text));
  }
  await_clients(gateway.server, 1);
}

TEST(GatewayHalfClosed, gets_the_replies_to_what_it_sent) {
  Gateway gateway;
  gateway.first.answers(always(""));
  gateway.second.answers(always(bulk("two")));
  gateway.client.send(encode({"GET", "hello"}) + encode({"GET", "foo"}) + encode({"PING"}));
  gateway.client.end_sending();
  gateway.first.await(1);
  WireClient other = gateway.server.connect();
  EXPECT_EQ(other.call({"GET", "foo"}), bulk("two"));
  gateway.first.say(bulk("one"));
  EXPECT_EQ(gateway.client.until_closed(), bulk("one") + bulk("two") + "+PONG\r\n");
  await_clients(gateway.server, 1);
}

TEST(GatewayHalfClosed, gets_them_though_the_cluster_is_not_known_yet) {
  FakeNode node;
  RunningServer server(gateway_to(node));
  WireClient client = server.connect();
  client.send(encode({"GET", "foo"}) + encode({"GET", "hello"}));
  client.end_sending();
  EXPECT_EQ(server.connect().call({"PING"}), "+PONG\r\n");
  node.answers(always(bulk("x")));
  node.slots(two_nodes(node.port(), node.port()));
  EXPECT_EQ(client.until_closed(), bulk("x") + bulk("x"));
}

TEST(GatewayHalfClosed, is_closed_at_once_when_nothing_is_owed) {
  Gateway gateway;
  gateway.client.call({"PING"});
  gateway.client.end_sending();
  EXPECT_EQ(gateway.client.until_closed(), "");
}

TEST(GatewayAllNodes, joins_the_replies_of_the_primaries) {
  const struct {
    std::vector<std::string> words;
    std::string first, second, joined;
  } rows[] = {
      {{"DBSIZE"}, ":3\r\n", ":4\r\n", ":7\r\n"},
      {{"FLUSHALL"}, "+OK\r\n", "+OK\r\n", "+OK\r\n"},
      {{"SCRIPT", "EXISTS", "a", "b"}, "*2\r\n:1\r\n:1\r\n", "*2\r\n:1\r\n:0\r\n", "*2\r\n:1\r\n:0\r\n"},
      {{"SCRIPT", "LOAD", "return 1"}, bulk("sha"), bulk("sha"), bulk("sha")},
      {{"FUNCTION", "DELETE", "f"}, "+OK\r\n", "+OK\r\n", "+OK\r\n"},
      {{"KEYS", "*"}, "*1\r\n" + bulk("a"), "*1\r\n" + bulk("a"), "*2\r\n" + bulk("a") + bulk("a")},
      {{"KEYS", "*"}, "*1\r\n" + bulk("a"), "*0\r\n", "*1\r\n" + bulk("a")},
      {{"KEYS", "*"}, "*0\r\n", "*0\r\n", "*0\r\n"},
      {{"RANDOMKEY"}, "$-1\r\n", bulk("b"), bulk("b")},
      {{"RANDOMKEY"}, "$-1\r\n", "$-1\r\n", "$-1\r\n"},
  };
  Gateway gateway;
  for (const auto& row : rows) {
    gateway.first.answers(always(row.first));
    gateway.second.answers(always(row.second));
    EXPECT_EQ(gateway.client.call(row.words), row.joined) << row.words[0];
    EXPECT_EQ(gateway.first.requests().back(), row.words);
    EXPECT_EQ(gateway.second.requests().back(), row.words);
  }
}

TEST(GatewayAllNodes, says_which_node_failed) {
  Gateway gateway;
  gateway.second.answers(always("-NOPERM no\r\n"));
  EXPECT_EQ(gateway.client.call({"FLUSHALL"}),
            "-NOPERM no (from " + gateway.second.address() + "; other nodes may have run it)\r\n");
  gateway.second.answers(closes());
  const std::string lost = gateway.client.call({"FLUSHALL"});
  EXPECT_TRUE(lost.starts_with("-NODEDOWN " + gateway.second.address())) << lost;
}

TEST(GatewayAllNodes, do_not_answer_for_slots_that_nobody_has) {
  FakeNode node;
  node.slots("*1\r\n*3\r\n:0\r\n:8191\r\n*4\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(node.port()) +
             "\r\n$2\r\nid\r\n*0\r\n");
  RunningServer server(gateway_to(node));
  WireClient client = server.connect();
  while (server.run([](Server& s) { return s.gateway->facts().map_reads; }) == 0) std::this_thread::yield();
  EXPECT_EQ(client.call({"GET", "hello"}), "+OK\r\n");
  client.send(encode({"DBSIZE"}));
  while (server.run([](Server& s) { return s.gateway->facts().held_clients; }) == 0)
    std::this_thread::yield();
  pass_ms(server, 6000);
  const std::string reply = client.reply();
  EXPECT_TRUE(reply.starts_with("-CLUSTERDOWN each node could not be asked, the command did not run: some"))
      << reply;
}

std::string scanned(const std::string& cursor, const std::string& key) {
  return "*2\r\n" + bulk(cursor) + "*1\r\n" + bulk(key);
}

// The cursor in a reply to SCAN.
std::string cursor_of(const std::string& reply) {
  const std::size_t from = reply.find("\r\n", 4) + 2;
  return reply.substr(from, reply.find("\r\n", from) - from);
}

TEST(GatewayScan, visits_one_node_after_another) {
  Gateway gateway;
  const auto in_two_steps = [](const std::string& first, const std::string& second) {
    return [=](const FakeNode::Words& words) {
      return words[1] == "0" ? scanned("88", first) : scanned("0", second);
    };
  };
  gateway.first.answers(in_two_steps("a", "b"));
  gateway.second.answers(in_two_steps("c", "d"));
  std::string cursor = "0", keys;
  do {
    const std::string reply = gateway.client.call({"SCAN", cursor, "MATCH", "*", "COUNT", "7"});
    keys += reply.substr(reply.size() - 3, 1);
    cursor = cursor_of(reply);
  } while (cursor != "0" && keys.size() < 10);
  EXPECT_TRUE(keys == "abcd" || keys == "cdab") << keys;
  for (FakeNode* node : {&gateway.first, &gateway.second}) {
    EXPECT_EQ(node->requests(), (std::vector<FakeNode::Words>{{"SCAN", "0", "MATCH", "*", "COUNT", "7"},
                                                              {"SCAN", "88", "MATCH", "*", "COUNT", "7"}}));
  }
}

TEST(GatewayScan, keeps_its_place_among_other_replies) {
  Gateway gateway;
  gateway.first.answers(always(scanned("0", "a")));
  gateway.second.answers(always(scanned("0", "a")));
  gateway.client.send(encode({"SCAN", "0"}) + encode({"PING"}));
  EXPECT_TRUE(gateway.client.reply().ends_with(bulk("a")));
  EXPECT_EQ(gateway.client.reply(), "+PONG\r\n");
}

TEST(GatewayScan, refuses_cursors_that_lead_nowhere) {
  constexpr std::uint64_t no_node = 4000, in_the_middle = 5;
  Gateway gateway;
  EXPECT_EQ(gateway.client.call({"SCAN", "x"}), "-ERR invalid cursor\r\n");
  EXPECT_EQ(gateway.client.call({"SCAN", std::to_string(in_the_middle << 13 | no_node)}),
            "-ERR the node that this cursor belongs to has no slots any more: start again from 0\r\n");
}

TEST(GatewayScan, says_what_is_wrong_with_a_nodes_reply) {
  const struct {
    std::string reply, said;
  } rows[] = {
      {"-NOPERM no\r\n", "-NOPERM no\r\n"},
      {"+OK\r\n", "-ERR the node's reply to SCAN is not one\r\n"},
      {"*2\r\n$1\r\nx\r\n*0\r\n", "-ERR the node's reply to SCAN is not one\r\n"},
      {scanned("18446744073709551615", "a"),
       "-ERR the node's cursor is too large to pass through a gateway: scan the node itself\r\n"},
  };
  Gateway gateway;
  for (const auto& row : rows) {
    gateway.first.answers(always(row.reply));
    gateway.second.answers(always(row.reply));
    EXPECT_EQ(gateway.client.call({"SCAN", "0"}), row.said);
  }
}

TEST(GatewayPubSub, tells_of_the_gateways_own_subscribers) {
  Gateway gateway;
  EXPECT_EQ(gateway.client.call({"PUBSUB", "NUMSUB", "ch"}), "*2\r\n" + bulk("ch") + ":0\r\n");
}

TEST(GatewayScripts, without_keys_run_on_any_node) {
  Gateway gateway;
  gateway.first.answers(always(":1\r\n"));
  gateway.second.answers(always(":1\r\n"));
  EXPECT_EQ(gateway.client.call({"EVAL", "return 1", "0"}), ":1\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
