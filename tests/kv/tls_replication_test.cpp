// A replica with TLS: which peers it trusts, and that nothing else differs.
#include <gtest/gtest.h>

#include "tests/kv/certificates.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/replication_load.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

Settings tls_primary() {
  Settings settings = with_certificates(quiet_settings());
  settings.tls_port = any_port;
  settings.enable_debug_command = 1;
  return settings;
}

Settings tls_replica() {
  Settings settings = with_certificates(quiet_settings());
  settings.tls_replication = true;
  settings.enable_debug_command = 1;
  return settings;
}

void follow(RunningServer& replica, RunningServer& primary) {
  const std::string port = std::to_string(primary.run([](Server& s) { return s.port("tls"); }));
  EXPECT_EQ(replica.connect().call({"REPLICAOF", "127.0.0.1", port}), "+OK\r\n");
}

void await_log(RunningServer& server, const std::string& text) {
  while (server.log().find(text) == std::string::npos) std::this_thread::yield();
}

TEST(TlsReplication, has_all_data_and_goes_on_after_a_cut) {
  RunningServer primary(tls_primary());
  RunningServer replica(tls_replica());
  WireClient primarys = primary.connect();
  WireClient replicas = replica.connect();
  primarys.call({"SET", "large", std::string(3'000'000, 'x')});
  ReplicationLoad load(41);
  for (int i = 0; i < 200; ++i) load.step(primarys);
  follow(replica, primary);
  for (int i = 0; i < 200; ++i) load.step(primarys);
  await_replicas(primarys);
  EXPECT_EQ(primarys.call({"CLIENT", "KILL", "TYPE", "replica"}), ":1\r\n");
  for (int i = 0; i < 200; ++i) load.step(primarys);
  await_replicas(primarys);
  EXPECT_EQ(state_seen(replicas), state_seen(primarys));
  EXPECT_EQ(fact(primarys, "stats", "sync_partial_ok"), "1");
}

TEST(TlsReplication, follows_nobody_whom_its_authorities_do_not_know) {
  RunningServer primary(tls_primary());
  Settings settings = tls_replica();
  settings.tls_ca_cert_file = certificates().certificate("stranger");
  RunningServer replica(std::move(settings));
  follow(replica, primary);
  await_log(replica, "certificate verify failed");
  WireClient client = replica.connect();
  EXPECT_EQ(fact(client, "replication", "master_link_status"), "down");
  client.call({"CONFIG", "SET", "tls-ca-cert-file", certificates().certificate("ca")});
  WireClient primarys = primary.connect();
  await_replicas(primarys);
}

TEST(TlsReplication, needs_to_know_who_may_sign) {
  RunningServer primary(tls_primary());
  Settings settings = tls_replica();
  settings.tls_ca_cert_file.clear();
  RunningServer replica(std::move(settings));
  follow(replica, primary);
  await_log(replica, "nothing says who may sign the primary's certificate");
  WireClient client = replica.connect();
  EXPECT_EQ(fact(client, "replication", "master_link_status"), "down");
}

}  // namespace
}  // namespace weir::kv::testing
