// A gateway between clients and a cluster whose nodes reply as the test wants.
#include <gtest/gtest.h>

#include "kv/settings/wrong_settings.hpp"
#include "tests/kv/gateway_cluster.hpp"

namespace weir::kv::testing {
namespace {

TEST(Gateway, passes_commands_to_the_node_that_has_the_slot) {
  Gateway gateway;
  gateway.first.answers(always(bulk("one")));
  gateway.second.answers(always(bulk("two")));
  EXPECT_EQ(gateway.client.call({"GET", "hello"}), bulk("one"));
  EXPECT_EQ(gateway.client.call({"GET", "foo"}), bulk("two"));
  EXPECT_EQ(gateway.first.requests(), (std::vector<FakeNode::Words>{{"GET", "hello"}}));
  EXPECT_EQ(gateway.second.requests(), (std::vector<FakeNode::Words>{{"GET", "foo"}}));
}

TEST(Gateway, gives_replies_in_the_order_of_the_requests) {
  Gateway gateway;
  gateway.first.answers(always(""));
  gateway.second.answers(always(bulk("two")));
  EXPECT_EQ(gateway.client.call({"GET", "foo"}), bulk("two"));
  gateway.client.send(encode({"GET", "hello"}) + encode({"GET", "foo"}) + encode({"PING"}) +
                      encode({"GET", "foo"}));
  gateway.second.await(2);
  EXPECT_TRUE(gateway.client.quiet());
  gateway.first.await(1);
  gateway.first.say(bulk("one"));
  EXPECT_EQ(gateway.client.reply(), bulk("one"));
  EXPECT_EQ(gateway.client.reply(), bulk("two"));
  EXPECT_EQ(gateway.client.reply(), "+PONG\r\n");
  EXPECT_EQ(gateway.client.reply(), bulk("two"));
}

TEST(Gateway, says_what_it_refuses_behind_the_replies_before) {
  Gateway gateway;
  gateway.first.answers(always(""));
  gateway.client.send(encode({"GET", "hello"}) + encode({"WAIT", "1", "0"}) + encode({"DEL", "foo", "bar"}) +
                      encode({"GET"}) + encode({"NOSUCH"}));
  gateway.first.await(1);
  EXPECT_TRUE(gateway.client.quiet());
  gateway.first.say(bulk("one"));
  EXPECT_EQ(gateway.client.reply(), bulk("one"));
  EXPECT_TRUE(
      gateway.client.reply().starts_with("-NOTROUTED WAIT: replicas confirm writes, and this connection"));
  EXPECT_EQ(gateway.client.reply(), "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
  EXPECT_EQ(gateway.client.reply(), "-ERR wrong number of arguments for 'get' command\r\n");
  EXPECT_TRUE(gateway.client.reply().starts_with("-ERR unknown command 'NOSUCH'"));
}

TEST(Gateway, ends_a_client_that_sends_no_request_behind_the_replies_before) {
  Gateway gateway;
  gateway.first.answers(always(""));
  gateway.client.send(encode({"GET", "hello"}) + "*1\r\nx\r\n");
  gateway.first.await(1);
  gateway.first.say(bulk("one"));
  EXPECT_EQ(gateway.client.until_closed(), bulk("one") + "-ERR Protocol error: expected '$', got 'x'\r\n");
}

TEST(Gateway, has_seats_for_clients_that_ask_however_many_are_silent) {
  Settings few;
  few.maxclients = 3;
  Gateway gateway(few);
  gateway.first.answers(always(bulk("one")));
  EXPECT_EQ(gateway.client.call({"GET", "hello"}), bulk("one"));
  for (int i = 0; i < 10; ++i) {
    const WireClient silent = gateway.server.connect(), another = gateway.server.connect();
    WireClient asks = gateway.server.connect();
    EXPECT_EQ(asks.call({"GET", "hello"}), bulk("one"));
  }
  EXPECT_EQ(gateway.client.call({"GET", "hello"}), bulk("one"));
}

TEST(Gateway, follows_a_slot_that_moved) {
  Gateway gateway;
  gateway.first.answers([&](const FakeNode::Words& words) {
    return words[1] == "hello" ? "-MOVED 866 " + gateway.second.address() + "\r\n" : bulk("one");
  });
  gateway.second.answers(always(bulk("two")));
  gateway.first.slots(two_nodes(gateway.second.port(), gateway.second.port()));
  EXPECT_EQ(gateway.client.call({"GET", "hello"}), bulk("two"));
  EXPECT_EQ(gateway.client.call({"GET", "hello"}), bulk("two"));
  EXPECT_LE(gateway.first.requests().size(), 1u) << "the second goes straight there";
}

TEST(Gateway, asks_another_node_once_while_a_slot_moves) {
  Gateway gateway;
  gateway.first.answers(
      [&](const FakeNode::Words&) { return "-ASK 866 " + gateway.second.address() + "\r\n"; });
  gateway.second.answers(always(bulk("two")));
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(gateway.client.call({"GET", "hello"}), bulk("two"));
    EXPECT_EQ(gateway.first.requests().size(), static_cast<std::size_t>(i)) << "the slot is still there";
  }
  const std::vector<FakeNode::Words> expected{{"ASKING"}, {"GET", "hello"}, {"ASKING"}, {"GET", "hello"}};
  EXPECT_EQ(gateway.second.requests(), expected);
}

TEST(Gateway, keeps_the_order_of_requests_that_are_redirected) {
  Gateway gateway;
  gateway.first.answers(always(""));
  gateway.second.answers(
      [](const FakeNode::Words& words) { return words.size() == 3 ? std::string("+OK\r\n") : bulk("two"); });
  const std::string moved = "-MOVED 866 " + gateway.second.address() + "\r\n";
  WireClient other = gateway.server.connect();
  other.send(encode({"GET", "hello"}));
  gateway.first.await(1);
  gateway.client.send(encode({"SET", "hello", "1"}) + encode({"SET", "hello", "2"}));
  gateway.first.await(3);
  // The other client's request reveals where the slot is now. The third SET must not overtake the first two.
  for (FakeNode* node : {&gateway.first, &gateway.second})
    node->slots(two_nodes(gateway.second.port(), gateway.second.port()));
  gateway.first.say(moved);
  EXPECT_EQ(other.reply(), bulk("two"));
  gateway.client.send(encode({"SET", "hello", "3"}));
  const auto waits = [](Server& server) {
    return std::ranges::any_of(server.clients, [](const auto& entry) { return entry.second->paused(); });
  };
  while (!gateway.server.run(waits)) std::this_thread::yield();
  gateway.first.say(moved + moved);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(gateway.client.reply(), "+OK\r\n");
  std::string order;
  for (const FakeNode::Words& words : gateway.second.requests()) order += words.size() == 3 ? words[2] : "";
  EXPECT_EQ(order, "123");
}

TEST(Gateway, sends_a_transaction_in_one_piece_to_the_node_of_its_slot) {
  Gateway gateway;
  gateway.second.answers([](const FakeNode::Words& words) {
    return words[0] == "EXEC" ? std::string("*2\r\n+OK\r\n:7\r\n")
                              : std::string(words[0] == "MULTI" ? "+OK\r\n" : "+QUEUED\r\n");
  });
  const std::string requests = encode({"MULTI"}) + encode({"SET", "foo", "1"}) + encode({"INCR", "{foo}2"}) +
                               encode({"EXEC"}) + encode({"PING"});
  for (int i = 1; i <= 2; ++i) {
    gateway.client.send(requests);
    for (const char* reply : {"+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "*2\r\n+OK\r\n:7\r\n", "+PONG\r\n"})
      EXPECT_EQ(gateway.client.reply(), reply);
  }
  const std::vector<FakeNode::Words> once{{"MULTI"}, {"SET", "foo", "1"}, {"INCR", "{foo}2"}, {"EXEC"}};
  std::vector<FakeNode::Words> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(gateway.second.requests(), twice);
}

TEST(Gateway, follows_a_transaction_whose_slot_moved) {
  for (const bool once : {false, true}) {
    Gateway gateway;
    const std::string redirect = (once ? "-ASK 866 " : "-MOVED 866 ") + gateway.second.address() + "\r\n";
    gateway.first.answers([&](const FakeNode::Words& words) {
      return words[0] == "MULTI"  ? std::string("+OK\r\n")
             : words[0] == "EXEC" ? std::string("-EXECABORT Transaction discarded\r\n")
                                  : redirect;
    });
    gateway.second.answers([](const FakeNode::Words& words) {
      return std::string(words[0] == "EXEC" ? "*1\r\n:1\r\n" : "+OK\r\n");
    });
    gateway.client.send(encode({"MULTI"}) + encode({"INCR", "hello"}) + encode({"EXEC"}));
    for (const char* reply : {"+OK\r\n", "+QUEUED\r\n", "*1\r\n:1\r\n"})
      EXPECT_EQ(gateway.client.reply(), reply);
    std::vector<FakeNode::Words> expected{{"MULTI"}, {"INCR", "hello"}, {"EXEC"}};
    EXPECT_EQ(gateway.first.requests(), expected);
    if (once) expected.insert(expected.begin(), {"ASKING"});
    EXPECT_EQ(gateway.second.requests(), expected);
  }
}

TEST(Gateway, refuses_a_transaction_that_spans_slots_or_names_no_key) {
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"SET", "foo", "1"}, {"KEYS", "*"}, {"PING"}}) {
    Gateway gateway;
    gateway.client.call({"MULTI"});
    EXPECT_EQ(gateway.client.call({"SET", "hello", "1"}), "+QUEUED\r\n");
    const std::string refused = gateway.client.call(other);
    EXPECT_TRUE(refused.starts_with(other[0] == "SET" ? "-CROSSSLOT" : "-NOTROUTED")) << refused;
    EXPECT_EQ(gateway.client.call({"EXEC"}),
              "-EXECABORT Transaction discarded because of previous errors.\r\n");
    EXPECT_EQ(gateway.client.call({"EXEC"}), "-ERR EXEC without MULTI\r\n");
    EXPECT_TRUE(gateway.first.requests().empty());
  }
}

TEST(Gateway, says_why_a_node_aborted_a_transaction) {
  Gateway gateway;
  gateway.first.answers([](const FakeNode::Words& words) {
    return words[0] == "EXEC" ? std::string("-EXECABORT Transaction discarded\r\n")
                              : std::string("-OOM full\r\n");
  });
  gateway.client.send(encode({"MULTI"}) + encode({"SET", "hello", "1"}) + encode({"EXEC"}));
  EXPECT_EQ(gateway.client.reply(), "+OK\r\n");
  EXPECT_EQ(gateway.client.reply(), "+QUEUED\r\n");
  EXPECT_EQ(gateway.client.reply(), "-EXECABORT Transaction discarded because of: OOM full\r\n");
}

TEST(Gateway, gives_up_a_request_that_nodes_send_in_circles) {
  Gateway gateway;
  gateway.first.answers(
      [&](const FakeNode::Words&) { return "-MOVED 866 " + gateway.second.address() + "\r\n"; });
  gateway.second.answers(
      [&](const FakeNode::Words&) { return "-MOVED 866 " + gateway.first.address() + "\r\n"; });
  EXPECT_TRUE(gateway.client.call({"GET", "hello"}).starts_with("-MOVED 866 "));
  EXPECT_EQ(gateway.first.requests().size() + gateway.second.requests().size(), 6u);
}

TEST(Gateway, tells_a_client_that_its_command_may_have_run_when_the_node_died) {
  Gateway gateway;
  gateway.first.answers(closes());
  const std::string lost = gateway.client.call({"INCR", "hello"});
  EXPECT_TRUE(lost.starts_with("-NODEDOWN " + gateway.first.address() + ": the connection ended")) << lost;
  EXPECT_NE(lost.find("may have run"), lost.npos);
  gateway.first.answers(always(":2\r\n"));
  EXPECT_EQ(gateway.client.call({"INCR", "hello"}), ":2\r\n") << "a new connection";
  EXPECT_EQ(gateway.first.requests().size(), 2u) << "what was sent is not sent again";
}

TEST(Gateway, costs_a_node_its_link_when_it_answers_what_makes_no_sense) {
  for (const std::string& nonsense :
       {std::string("x\r\n"), std::string("$-5\r\n"), "+a\r\n+b\r\n+c\r\n" + bulk("")}) {
    Gateway gateway;
    gateway.first.answers(always(nonsense));
    gateway.second.answers(always(bulk("two")));
    gateway.client.call({"GET", "hello"});
    EXPECT_EQ(gateway.client.call({"GET", "foo"}), bulk("two"));
    gateway.first.answers(always(bulk("one")));
    std::string reply = gateway.client.call({"GET", "hello"});
    if (reply.starts_with("-NODEDOWN")) reply = gateway.client.call({"GET", "hello"});
    EXPECT_EQ(reply, bulk("one")) << nonsense;
  }
}

TEST(Gateway, waits_for_a_silent_node_no_longer_than_its_limit_and_delays_nobody_else) {
  Gateway gateway;
  gateway.first.answers(always(""));
  gateway.second.answers(always(bulk("two")));
  gateway.client.send(encode({"GET", "hello"}));
  gateway.first.await(1);
  WireClient other = gateway.server.connect();
  EXPECT_EQ(other.call({"GET", "foo"}), bulk("two"));
  EXPECT_TRUE(gateway.client.quiet());
  pass_ms(gateway.server, 6000);
  const std::string late = gateway.client.reply();
  EXPECT_TRUE(late.starts_with("-NODEDOWN " + gateway.first.address() + ": it has not answered for 5000 ms"))
      << late;
  EXPECT_EQ(other.call({"GET", "foo"}), bulk("two"));
}

TEST(Gateway, holds_commands_of_a_dead_node_until_another_has_its_slots) {
  Gateway gateway;
  gateway.second.answers(always(bulk("two")));
  EXPECT_EQ(gateway.client.call({"GET", "foo"}), bulk("two"));
  gateway.first.die();
  gateway.client.send(encode({"GET", "hello"}));
  WireClient other = gateway.server.connect();
  EXPECT_EQ(other.call({"GET", "foo"}), bulk("two"));
  gateway.second.slots(two_nodes(gateway.second.port(), gateway.second.port()));
  EXPECT_EQ(gateway.client.reply(), bulk("two"));
}

TEST(Gateway, refuses_commands_of_a_dead_node_when_nobody_takes_over) {
  Gateway gateway;
  gateway.second.answers(always(bulk("two")));
  EXPECT_EQ(gateway.client.call({"GET", "foo"}), bulk("two"));
  gateway.first.die();
  gateway.client.send(encode({"SET", "hello", "1"}));
  while (gateway.server.run([](Server& s) { return s.gateway->facts().held_clients; }) == 0)
    std::this_thread::yield();
  pass_ms(gateway.server, 6000);
  const std::string reply = gateway.client.reply();
  EXPECT_TRUE(
      reply.starts_with("-CLUSTERDOWN the node of slot 866 could not be asked, the command did not run: " +
                        gateway.first.address()))
      << reply;
}

TEST(Gateway, serves_what_came_before_it_knew_the_cluster) {
  FakeNode node;
  RunningServer server(gateway_to(node));
  WireClient client = server.connect();
  client.send(encode({"GET", "foo"}));
  EXPECT_EQ(server.connect().call({"PING"}), "+PONG\r\n");
  node.answers(always(bulk("x")));
  node.slots(two_nodes(node.port(), node.port()));
  EXPECT_EQ(client.reply(), bulk("x"));
}

TEST(Gateway, says_why_it_does_not_know_the_cluster) {
  FakeNode node;
  node.slots("-ERR This instance has cluster support disabled\r\n");
  RunningServer server(gateway_to(node));
  WireClient client = server.connect();
  client.send(encode({"GET", "foo"}));
  while (server.run([](Server& s) { return s.gateway->facts().map_failures; }) == 0)
    std::this_thread::yield();
  while (server.run([](Server& s) { return s.gateway->facts().held_clients; }) == 0)
    std::this_thread::yield();
  pass_ms(server, 6000);
  const std::string reply = client.reply();
  EXPECT_TRUE(reply.starts_with("-CLUSTERDOWN the node of slot 12182 could not be asked")) << reply;
  EXPECT_NE(reply.find("cluster support disabled"), reply.npos) << reply;
}

TEST(Gateway, speaks_to_nodes_as_its_clients_speak_and_with_its_password) {
  Settings settings;
  settings.masteruser = "gate";
  settings.masterauth = "secret";
  Gateway gateway(std::move(settings));
  gateway.first.answers(always("+OK\r\n"));
  gateway.client.call({"GET", "hello"});
  gateway.client.call({"HELLO", "3"});
  gateway.client.call({"GET", "hello"});
  const FakeNode::Words in_resp2{"HELLO", "2", "AUTH", "gate", "secret"};
  const FakeNode::Words in_resp3{"HELLO", "3", "AUTH", "gate", "secret"};
  const auto greetings = gateway.first.greetings();
  EXPECT_EQ(std::ranges::count(greetings, in_resp3), 1);
  EXPECT_EQ(std::ranges::count(greetings, in_resp2), static_cast<std::ptrdiff_t>(greetings.size()) - 1);
}

TEST(Gateway, asks_clients_for_its_own_password) {
  Settings settings;
  settings.requirepass = "p";
  Gateway gateway(std::move(settings));
  EXPECT_EQ(gateway.client.call({"GET", "hello"}), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(gateway.client.call({"AUTH", "p"}), "+OK\r\n");
  gateway.client.call({"ACL", "SETUSER", "reader", "on", "nopass", "~he*", "+get"});
  gateway.first.answers(always(bulk("one")));
  EXPECT_EQ(gateway.client.call({"AUTH", "reader", "x"}), "+OK\r\n");
  EXPECT_EQ(gateway.client.call({"GET", "hello"}), bulk("one"));
  EXPECT_TRUE(gateway.client.call({"GET", "foo"}).starts_with("-NOPERM"));
  EXPECT_TRUE(gateway.second.requests().empty());
}

TEST(Gateway, keeps_replies_from_clients_that_want_none) {
  Gateway gateway;
  gateway.first.answers(always(bulk("one")));
  gateway.client.send(encode({"CLIENT", "REPLY", "SKIP"}) + encode({"SET", "hello", "1"}) +
                      encode({"GET", "hello"}));
  EXPECT_EQ(gateway.client.reply(), bulk("one"));
  gateway.client.send(encode({"CLIENT", "REPLY", "OFF"}) + encode({"SET", "hello", "1"}) +
                      encode({"CLIENT", "REPLY", "ON"}));
  EXPECT_EQ(gateway.client.reply(), "+OK\r\n");
  EXPECT_EQ(gateway.first.requests().size(), 3u);
  EXPECT_TRUE(gateway.client.quiet());
}

TEST(Gateway, drops_what_comes_for_a_client_that_is_gone) {
  Gateway gateway;
  gateway.first.answers(always(""));
  gateway.client.send(encode({"GET", "hello"}));
  gateway.first.await(1);
  gateway.client.close();
  await_clients(gateway.server, 0);
  WireClient other = gateway.server.connect();
  other.send(encode({"GET", "bar"}));
  gateway.first.await(2);
  gateway.first.say(bulk("late") + bulk("mine"));
  EXPECT_EQ(other.reply(), bulk("mine"));
}

TEST(Gateway, does_not_read_on_from_a_client_whose_replies_do_not_come) {
  Gateway gateway;
  gateway.first.answers(always(""));
  gateway.second.answers(always(bulk("two")));
  std::string requests;
  constexpr std::size_t many = 3000;
  for (std::size_t i = 0; i < many; ++i) requests += encode({"GET", "hello"});
  gateway.client.send(requests);
  gateway.first.await(cluster::Lane::most_places);
  WireClient other = gateway.server.connect();
  EXPECT_EQ(other.call({"GET", "foo"}), bulk("two"));
  EXPECT_EQ(gateway.first.requests().size(), cluster::Lane::most_places);
  gateway.first.answers(always(bulk("one")));
  std::string replies;
  for (std::size_t i = 0; i < cluster::Lane::most_places; ++i) replies += bulk("one");
  gateway.first.say(replies);
  for (std::size_t i = 0; i < many; ++i) ASSERT_EQ(gateway.client.reply(), bulk("one")) << i;
}

TEST(Gateway, refuses_databases_and_what_would_save_nothing) {
  Gateway gateway;
  EXPECT_EQ(gateway.client.call({"SELECT", "0"}), "+OK\r\n");
  EXPECT_EQ(gateway.client.call({"SELECT", "1"}), "-ERR SELECT is not allowed in cluster mode\r\n");
  EXPECT_TRUE(
      gateway.client.call({"SAVE"}).starts_with("-NOTROUTED SAVE: it is about one server's own data"));
  EXPECT_TRUE(gateway.client.call({"SHUTDOWN", "SAVE"}).starts_with("-NOTROUTED SHUTDOWN"));
}

TEST(Gateway, does_not_go_together_with_data_of_its_own) {
  for (auto set : {+[](Settings& s) { s.appendonly = true; }, +[](Settings& s) { s.save = "60 1"; },
                   +[](Settings& s) { s.replicaof = "127.0.0.1 1"; }}) {
    Settings settings = quiet_settings();
    settings.cluster_gateway = "127.0.0.1:1";
    set(settings);
    EXPECT_NE(cluster::wrong_for_gateway(settings), "");
  }
  Settings settings = quiet_settings();
  settings.tls_cluster = true;
  EXPECT_NE(cluster::wrong_for_gateway(settings), "");
}

TEST(Gateway, tells_its_state) {
  Gateway gateway;
  gateway.first.answers(always("+OK\r\n"));
  gateway.client.call({"SET", "hello", "1"});
  const std::string info = gateway.client.call({"INFO", "gateway"});
  for (std::string_view line : {"gateway_enabled:1", "gateway_nodes:2", "gateway_slots_covered:16384",
                                "gateway_links:1", "gateway_passed_on:1"})
    EXPECT_NE(info.find(line), info.npos) << line << " in " << info;
}

}  // namespace
}  // namespace weir::kv::testing
