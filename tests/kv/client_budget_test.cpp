// maxmemory-clients: which clients are closed when all together hold too much.
#include <gtest/gtest.h>

#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr const char* ok = "+OK\r\n";

// As much of it as the server takes: it may hang up in the middle.
void offer(WireClient& client, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(client.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::uint64_t evicted(RunningServer& server) {
  return server.run([](Server& s) { return s.stats.evicted_clients; });
}

// Of many commands that wait for EXEC.
void queue_up(WireClient& client, std::size_t bytes) {
  client.call({"MULTI"});
  client.call({"ECHO", std::string(bytes, 'x')});
}

TEST(MaxmemoryClients, closes_the_largest_only) {
  RunningServer server;
  WireClient small = server.connect();
  WireClient large = server.connect();
  WireClient middle = server.connect();
  queue_up(small, 100'000);
  queue_up(large, 600'000);
  queue_up(middle, 300'000);
  EXPECT_EQ(server.connect().call({"CONFIG", "SET", "maxmemory-clients", "700000"}), ok);
  EXPECT_EQ(large.until_closed(), "");
  EXPECT_EQ(evicted(server), 1u);
  EXPECT_NE(server.log().find("Evicting client: id="), std::string::npos);
  EXPECT_TRUE(small.call({"EXEC"}).starts_with("*1\r\n"));
  EXPECT_TRUE(middle.call({"EXEC"}).starts_with("*1\r\n"));
}

TEST(MaxmemoryClients, closes_the_one_that_grows) {
  Settings settings = quiet_settings();
  settings.maxmemory_clients = 1 << 20;
  RunningServer server(settings);
  WireClient quiet = server.connect();
  quiet.call({"PING"});
  WireClient grows = server.connect();
  offer(grows, "*2\r\n$4\r\nECHO\r\n$10000000\r\n" + std::string(1'200'000, 'x'));
  while (evicted(server) == 0) std::this_thread::yield();
  EXPECT_EQ(quiet.call({"PING"}), "+PONG\r\n");
}

TEST(MaxmemoryClients, counts_replies_that_nobody_reads) {
  Settings settings = quiet_settings();
  settings.maxmemory_clients = 2 << 20;
  RunningServer server(settings);
  WireClient reads = server.connect();
  reads.call({"SET", "k", std::string(500'000, 'v')});
  WireClient does_not = server.connect();
  for (int i = 0; i < 20; ++i) offer(does_not, encode({"GET", "k"}));
  while (evicted(server) == 0) std::this_thread::yield();
  EXPECT_EQ(reads.call({"PING"}), "+PONG\r\n");
}

TEST(MaxmemoryClients, spares_those_that_said_so) {
  RunningServer server;
  WireClient spared = server.connect();
  WireClient other = server.connect();
  EXPECT_EQ(spared.call({"CLIENT", "NO-EVICT", "ON"}), ok);
  queue_up(spared, 600'000);
  queue_up(other, 100'000);
  server.connect().call({"CONFIG", "SET", "maxmemory-clients", "200000"});
  EXPECT_EQ(other.until_closed(), "");
  EXPECT_TRUE(spared.call({"EXEC"}).starts_with("*1\r\n"));
}

TEST(MaxmemoryClients, may_be_a_part_of_maxmemory) {
  RunningServer server;
  WireClient client = server.connect();
  WireClient manager = server.connect();
  queue_up(client, 500'000);
  EXPECT_EQ(manager.call({"CONFIG", "SET", "maxmemory-clients", "5%"}), ok);
  EXPECT_EQ(manager.call({"CONFIG", "GET", "maxmemory-clients"}),
            "*2\r\n$17\r\nmaxmemory-clients\r\n$2\r\n5%\r\n");
  EXPECT_EQ(client.call({"PING"}), "+QUEUED\r\n") << "without maxmemory there is no limit";
  EXPECT_EQ(manager.call({"CONFIG", "SET", "maxmemory", "100000000"}), ok);
  EXPECT_EQ(client.call({"PING"}), "+QUEUED\r\n");
  EXPECT_EQ(manager.call({"CONFIG", "SET", "maxmemory", "8000000"}), ok);
  EXPECT_EQ(client.until_closed(), "");
}

TEST(MaxmemoryClients, refuses_what_is_no_amount) {
  RunningServer server;
  WireClient client = server.connect();
  for (const char* amount : {"x", "%", "-5%", "-1"})
    EXPECT_TRUE(client.call({"CONFIG", "SET", "maxmemory-clients", amount})
                    .ends_with("argument must be a memory or percent value\r\n"))
        << amount;
  EXPECT_TRUE(client.call({"CONFIG", "SET", "maxmemory-clients", "101%"})
                  .ends_with("percentage argument must be less or equal to 100\r\n"));
}

TEST(MaxmemoryClients, forgets_what_it_counted_when_turned_off) {
  RunningServer server;
  WireClient client = server.connect();
  client.call({"CONFIG", "SET", "maxmemory-clients", "1000000"});
  EXPECT_NE(server.run([](Server& s) { return s.clients.begin()->second->budgeted_bytes(); }), 0u);
  client.call({"CONFIG", "SET", "maxmemory-clients", "0"});
  EXPECT_EQ(server.run([](Server& s) { return s.clients.begin()->second->budgeted_bytes(); }), 0u);
}

}  // namespace
}  // namespace weir::kv::testing
