// Debian's redis-server and this server replicate each other with TLS.
#include <gtest/gtest.h>

#include "tests/kv/certificates.hpp"
#include "tests/kv/own_network.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/replication_load.hpp"

namespace weir::kv::testing {
namespace {

// Redis shows a certificate of the same authority, and requires one.
std::vector<std::string> with_tls(std::vector<std::string> words) {
  words.insert(
      words.end(),
      {"--tls-replication", "yes", "--tls-cert-file", certificates().certificate("client"), "--tls-key-file",
       certificates().key("client"), "--tls-ca-cert-file", certificates().certificate("ca"),
       "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"});
  return words;
}

TEST(RedisTlsReplication, redis_follows_this_server) {
  Settings settings = with_certificates(quiet_settings());
  settings.tls_port = any_port;
  settings.enable_debug_command = 1;
  RunningServer weir(std::move(settings));
  WireClient ours = weir.connect();
  ReplicationLoad load(61);
  for (int i = 0; i < 300; ++i) load.step(ours);
  const std::string port = std::to_string(weir.run([](Server& s) { return s.port("tls"); }));
  RedisServer redis(with_tls({"--replicaof", "127.0.0.1 " + port}));
  for (int i = 0; i < 300; ++i) load.step(ours);
  await_replicas(ours);
  WireClient theirs = redis.connect();
  EXPECT_EQ(state_seen(theirs), state_seen(ours));
}

// tls-client-cert-file has the certificate that Redis trusts.
TEST(RedisTlsReplication, this_server_follows_redis) {
  if (!enter_own_network())
    GTEST_SKIP() << "the kernel lets this user make no network namespace (CLONE_NEWNET)";
  RedisServer redis(with_tls({"--tls-port", "6380", "--bind", "127.0.0.1"}));
  WireClient theirs = redis.connect();
  ReplicationLoad load(62);
  for (int i = 0; i < 300; ++i) load.step(theirs);
  Settings settings = with_certificates(quiet_settings());
  settings.tls_cert_file = certificates().certificate("stranger");
  settings.tls_key_file = certificates().key("stranger");
  settings.tls_client_cert_file = certificates().certificate("client");
  settings.tls_client_key_file = certificates().key("client");
  settings.tls_replication = true;
  settings.enable_debug_command = 1;
  RunningServer weir(std::move(settings));
  WireClient ours = weir.connect();
  EXPECT_EQ(ours.call({"REPLICAOF", "127.0.0.1", "6380"}), "+OK\r\n");
  for (int i = 0; i < 300; ++i) load.step(theirs);
  await_replicas(theirs);
  EXPECT_EQ(state_seen(ours), state_seen(theirs));
  EXPECT_EQ(theirs.call({"CLIENT", "KILL", "TYPE", "replica"}), ":1\r\n");
  for (int i = 0; i < 300; ++i) load.step(theirs);
  await_replicas(theirs);
  EXPECT_EQ(state_seen(ours), state_seen(theirs));
  EXPECT_EQ(fact(theirs, "stats", "sync_partial_ok"), "1");
  EXPECT_EQ(fact(ours, "replication", "master_link_transport"), "tls");
}

}  // namespace
}  // namespace weir::kv::testing
