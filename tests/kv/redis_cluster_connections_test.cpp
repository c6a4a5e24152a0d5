// Through a gateway in front of six redis-servers: WATCH, blocking commands and subscriptions, while slots
// move and nodes stall and die; commands to all nodes; and the same cluster with TLS.
#include <gtest/gtest.h>

#include <set>

#include "cluster/key_slot.hpp"
#include "tests/kv/certificates.hpp"
#include "tests/kv/own_network.hpp"
#include "tests/kv/redis_cluster.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

using weir::cluster::key_slot;

Settings gateway_settings(std::size_t seed) {
  Settings settings = quiet_settings();
  settings.cluster_gateway = "127.0.0.1:" + std::to_string(RedisCluster::port(seed));
  settings.cluster_gateway_timeout_ms = 1500;
  return settings;
}

// A key in a slot that this primary has at first.
std::string key_at(std::size_t node, int number = 0) {
  for (int i = 0;; ++i) {
    const std::string tag = "k" + std::to_string(i);
    if (RedisCluster::first_owner(key_slot(tag)) == node && number-- == 0) return tag;
  }
}

std::string bulk_of(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}
std::string popped(std::string_view key, std::string_view value) {
  return "*2\r\n" + bulk_of(key) + bulk_of(value);
}
std::string published(std::string_view channel, std::string_view text) {
  return "*3\r\n" + bulk_of("message") + bulk_of(channel) + bulk_of(text);
}
std::string subscribed(std::string_view verb, std::string_view topic) {
  return "*3\r\n" + bulk_of(verb) + bulk_of(topic) + ":1\r\n";
}

struct ThroughGateway {
  ThroughGateway(RedisCluster& nodes, Settings settings) : cluster(nodes), gateway(std::move(settings)) {}

  void move_slot_of(const std::string& key, std::size_t from, std::size_t to) {
    cluster.move_slot(key_slot(key), from, to);
  }
  void await_blocked(std::size_t node, int count) {
    await_true("so many wait at the node", [&] {
      return cluster.call(node, {"INFO", "clients"})
                 .find("blocked_clients:" + std::to_string(count) + "\r\n") != std::string::npos;
    });
  }

  RedisCluster& cluster;
  RunningServer gateway;
  WireClient client = gateway.connect();
  WireClient other = gateway.connect();
};

void transactions_are_whole(ThroughGateway& at) {
  const std::string key = key_at(1);
  for (const bool changes : {false, true}) {
    EXPECT_EQ(at.client.call({"SET", key, "1"}), "+OK\r\n");
    EXPECT_EQ(at.client.call({"WATCH", key}), "+OK\r\n");
    if (changes) {
      EXPECT_EQ(at.other.call({"SET", key, "5"}), "+OK\r\n");
    }
    EXPECT_EQ(at.client.call({"MULTI"}), "+OK\r\n");
    EXPECT_EQ(at.client.call({"INCR", key}), "+QUEUED\r\n");
    EXPECT_EQ(at.client.call({"EXEC"}), changes ? "*-1\r\n" : "*1\r\n:2\r\n");
    EXPECT_EQ(at.client.call({"GET", key}), bulk_of(changes ? "5" : "2"));
  }
}

void a_slot_that_moves_breaks_the_watch(ThroughGateway& at) {
  const std::string key = key_at(1, 1);
  EXPECT_EQ(at.client.call({"SET", key, "1"}), "+OK\r\n");
  EXPECT_EQ(at.client.call({"WATCH", key}), "+OK\r\n");
  at.move_slot_of(key, 1, 2);
  EXPECT_EQ(at.client.call({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(at.client.call({"INCR", key}), "+QUEUED\r\n");
  EXPECT_EQ(at.client.call({"EXEC"}), "*-1\r\n");
  EXPECT_EQ(at.client.call({"GET", key}), bulk_of("1"));
}

void a_waiting_command_goes_with_its_slot(ThroughGateway& at) {
  const std::string key = key_at(1, 2);
  at.client.send(encode({"BLPOP", key, "0"}));
  at.await_blocked(1, 1);
  EXPECT_EQ(at.other.call({"PING"}), "+PONG\r\n");
  at.move_slot_of(key, 1, 2);
  at.await_blocked(2, 1);
  EXPECT_EQ(at.other.call({"RPUSH", key, "x"}), ":1\r\n");
  EXPECT_EQ(at.client.reply(), popped(key, "x"));
}

void a_waiting_client_can_be_unblocked(ThroughGateway& at) {
  const std::string id = at.client.call({"CLIENT", "ID"});
  for (const bool with_error : {false, true}) {
    at.client.send(encode({"BLPOP", key_at(2, 1), "0"}));
    at.await_blocked(2, 1);
    EXPECT_EQ(
        at.other.call({"CLIENT", "UNBLOCK", id.substr(1, id.size() - 3), with_error ? "ERROR" : "TIMEOUT"}),
        ":1\r\n");
    EXPECT_EQ(at.client.reply(),
              with_error ? "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n" : "*-1\r\n");
  }
}

void a_client_that_leaves_waits_no_more(ThroughGateway& at) {
  const std::string key = key_at(2);
  WireClient leaves = at.gateway.connect();
  leaves.send(encode({"BLPOP", key, "0"}));
  at.await_blocked(2, 1);
  leaves.close();
  at.await_blocked(2, 0);
  EXPECT_EQ(at.other.call({"RPUSH", key, "x"}), ":1\r\n");
  EXPECT_EQ(at.other.call({"LPOP", key}), bulk_of("x")) << "nobody took it";
}

void messages_come_from_every_node(ThroughGateway& at) {
  EXPECT_EQ(at.client.call({"SUBSCRIBE", "news"}), subscribed("subscribe", "news"));
  for (std::size_t node = 0; node < RedisCluster::size; ++node) {
    at.cluster.call(node, {"PUBLISH", "news", std::to_string(node)});
    EXPECT_EQ(at.client.reply(), published("news", std::to_string(node)));
  }
  EXPECT_EQ(at.client.call({"UNSUBSCRIBE"}), "*3\r\n" + bulk_of("unsubscribe") + bulk_of("news") + ":0\r\n");
}

void a_shard_channel_ends_when_its_slot_moves(ThroughGateway& at) {
  const std::string channel = key_at(1, 3);
  EXPECT_EQ(at.client.call({"SSUBSCRIBE", channel}), subscribed("ssubscribe", channel));
  EXPECT_EQ(at.other.call({"SPUBLISH", channel, "x"}), ":1\r\n");
  EXPECT_EQ(at.client.reply(), "*3\r\n" + bulk_of("smessage") + bulk_of(channel) + bulk_of("x"));
  at.move_slot_of(channel, 1, 2);
  EXPECT_EQ(at.client.reply(), "*3\r\n" + bulk_of("sunsubscribe") + bulk_of(channel) + ":0\r\n");
  EXPECT_EQ(at.client.call({"SSUBSCRIBE", channel}), subscribed("ssubscribe", channel));
  EXPECT_EQ(at.other.call({"SPUBLISH", channel, "y"}), ":1\r\n");
  EXPECT_EQ(at.client.reply(), "*3\r\n" + bulk_of("smessage") + bulk_of(channel) + bulk_of("y"));
  EXPECT_EQ(at.client.call({"RESET"}), "+RESET\r\n");
}

void a_node_that_stands_still_is_told_of(ThroughGateway& at) {
  WireClient waits = at.gateway.connect();
  waits.send(encode({"BLPOP", key_at(1, 4), "0"}));
  at.await_blocked(1, 1);
  at.cluster.halt(1);
  const std::string lost = waits.reply();
  at.cluster.resume(1);
  EXPECT_TRUE(lost.starts_with("-NODEDOWN 127.0.0.1:" + std::to_string(RedisCluster::port(1)))) << lost;
  EXPECT_EQ(at.other.call({"SET", key_at(2, 5), "1"}), "+OK\r\n");
}

std::set<std::string> words_with(std::string_view prefix, const std::string& reply) {
  std::set<std::string> found;
  for (std::size_t at = reply.find(prefix); at != std::string::npos; at = reply.find(prefix, at + 1))
    found.insert(reply.substr(at, reply.find("\r\n", at) - at));
  return found;
}

void a_scan_finds_the_keys_of_all_nodes(ThroughGateway& at) {
  std::set<std::string> keys;
  for (int i = 0; i < 300; ++i) {
    keys.insert("scanned:" + std::to_string(i));
    EXPECT_EQ(at.client.call({"SET", "scanned:" + std::to_string(i), "x"}), "+OK\r\n");
  }
  EXPECT_EQ(words_with("scanned:", at.client.call({"KEYS", "scanned:*"})), keys);
  std::set<std::string> found;
  std::string cursor = "0";
  int steps = 0;
  do {
    const std::string reply = at.client.call({"SCAN", cursor, "MATCH", "scanned:*", "COUNT", "30"});
    found.merge(words_with("scanned:", reply));
    const std::size_t from = reply.find("\r\n", 4) + 2;
    cursor = reply.substr(from, reply.find("\r\n", from) - from);
  } while (cursor != "0" && ++steps < 1000);
  EXPECT_EQ(cursor, "0");
  EXPECT_EQ(found, keys);
}

void functions_are_loaded_at_every_node(ThroughGateway& at) {
  const std::string code =
      "#!lua name=lib\nredis.register_function('where', function(keys, args) return keys[1] end)";
  EXPECT_EQ(at.client.call({"FUNCTION", "LOAD", code}), bulk_of("lib"));
  for (std::size_t node = 0; node < 3; ++node)
    EXPECT_EQ(at.client.call({"FCALL", "where", "1", key_at(node)}), bulk_of(key_at(node)));
  EXPECT_EQ(at.client.call({"FUNCTION", "DELETE", "lib"}), "+OK\r\n");
}

void replicas_confirm_a_write_at_each_node(ThroughGateway& at) {
  WireClient client = at.gateway.connect();  // which has not written to several nodes without a WAIT
  for (std::size_t node = 0; node < RedisCluster::primaries; ++node) {
    EXPECT_EQ(client.call({"SET", key_at(node, 8), "1"}), "+OK\r\n");
    EXPECT_EQ(client.call({"WAIT", "1", "0"}), ":1\r\n");
  }
}

TEST(RedisClusterConnections, hold_while_slots_move_and_nodes_die) {
  if (!enter_own_network())
    GTEST_SKIP() << "the kernel lets this user make no network namespace (CLONE_NEWNET)";
  RedisCluster cluster;
  ThroughGateway at(cluster, gateway_settings(4));
  a_scan_finds_the_keys_of_all_nodes(at);
  functions_are_loaded_at_every_node(at);
  transactions_are_whole(at);
  replicas_confirm_a_write_at_each_node(at);
  a_slot_that_moves_breaks_the_watch(at);
  a_waiting_command_goes_with_its_slot(at);
  a_waiting_client_can_be_unblocked(at);
  a_client_that_leaves_waits_no_more(at);
  messages_come_from_every_node(at);
  a_shard_channel_ends_when_its_slot_moves(at);
  a_node_that_stands_still_is_told_of(at);

  // The first node has the channel subscriptions, and one client waits there.
  WireClient listens = at.gateway.connect();
  EXPECT_EQ(listens.call({"SUBSCRIBE", "news"}), subscribed("subscribe", "news"));
  at.client.send(encode({"BLPOP", key_at(0), "0"}));
  at.await_blocked(0, 1);
  cluster.await_replica(0);
  cluster.kill(0);
  const std::string end = listens.until_closed();
  EXPECT_TRUE(end.starts_with("-NODEDOWN") && end.find("may have been missed") != end.npos) << end;
  const std::string lost = at.client.reply();
  EXPECT_TRUE(lost.starts_with("-NODEDOWN")) << lost;
  EXPECT_EQ(at.other.call({"SET", key_at(1), "1"}), "+OK\r\n");
  cluster.fail_over(3, false);
  WireClient again = at.gateway.connect();
  EXPECT_EQ(again.call({"SUBSCRIBE", "news"}), subscribed("subscribe", "news"));
  at.cluster.call(2, {"PUBLISH", "news", "x"});
  EXPECT_EQ(again.reply(), published("news", "x"));
  await_true("the slot is served", [&] { return at.other.call({"RPUSH", key_at(0), "x"}).starts_with(":"); });
}

TEST(RedisClusterConnections, are_made_with_tls) {
  if (!enter_own_network())
    GTEST_SKIP() << "the kernel lets this user make no network namespace (CLONE_NEWNET)";
  RedisCluster cluster = RedisCluster::with_tls({"--tls-cert-file", certificates().certificate("client"),
                                                 "--tls-key-file", certificates().key("client"),
                                                 "--tls-ca-cert-file", certificates().certificate("ca")});
  Settings settings = with_certificates(gateway_settings(4));
  settings.tls_cert_file = certificates().certificate("stranger");
  settings.tls_key_file = certificates().key("stranger");
  settings.tls_client_cert_file = certificates().certificate("client");
  settings.tls_client_key_file = certificates().key("client");
  settings.tls_cluster = true;
  ThroughGateway at(cluster, settings);
  for (std::size_t node = 0; node < RedisCluster::primaries; ++node) {
    EXPECT_EQ(at.client.call({"SET", key_at(node, 6), "x"}), "+OK\r\n");
    EXPECT_EQ(at.client.call({"GET", key_at(node, 6)}), bulk_of("x"));
  }
  transactions_are_whole(at);
  a_client_that_leaves_waits_no_more(at);
  messages_come_from_every_node(at);
  cluster.fail_over(4, true);
  EXPECT_EQ(at.client.call({"GET", key_at(1)}), bulk_of("5"));

  // A gateway without a certificate of that authority.
  settings.unixsocket.clear();
  settings.tls_client_cert_file.clear();
  settings.tls_client_key_file.clear();
  RunningServer unknown(settings);
  const std::string refused = unknown.connect().call({"GET", key_at(1)});
  EXPECT_TRUE(refused.starts_with("-CLUSTERDOWN")) << refused;
}

}  // namespace
}  // namespace weir::kv::testing
