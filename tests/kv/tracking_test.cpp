// CLIENT TRACKING: the table is bounded, and a client's entries go when the client goes.
#include <gtest/gtest.h>

#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr const char* ok = "+OK\r\n";

std::string invalidation(const std::string& key) {
  return ">2\r\n$10\r\ninvalidate\r\n*1\r\n$" + std::to_string(key.size()) + "\r\n" + key + "\r\n";
}

WireClient tracking_client(RunningServer& server) {
  WireClient client = server.connect();
  client.call({"HELLO", "3"});
  EXPECT_EQ(client.call({"CLIENT", "TRACKING", "ON"}), ok);
  return client;
}

std::size_t keys(RunningServer& server) {
  return server.run([](Server& s) { return s.tracking.keys(); });
}
std::size_t items(RunningServer& server) {
  return server.run([](Server& s) { return s.tracking.items(); });
}

TEST(Tracking, says_that_a_key_changed_once) {
  RunningServer server;
  WireClient reader = tracking_client(server);
  WireClient writer = server.connect();
  reader.call({"GET", "k"});
  writer.call({"SET", "k", "1"});
  writer.call({"SET", "k", "2"});
  EXPECT_EQ(reader.reply(), invalidation("k"));
  EXPECT_TRUE(reader.quiet());
  EXPECT_EQ(keys(server), 0u);
}

TEST(Tracking, of_more_keys_than_may_be_remembered_some_count_as_changed) {
  Settings settings = quiet_settings();
  settings.tracking_table_max_keys = 10;
  RunningServer server(settings);
  WireClient reader = tracking_client(server);
  for (int i = 0; i < 30; ++i) {
    reader.send(encode({"GET", "k" + std::to_string(i)}));
    // It is told of a key that had to go, before or after the reply.
    std::size_t replies = i < 10 ? 1 : 2;
    for (; replies > 0; --replies) reader.reply();
  }
  EXPECT_TRUE(reader.quiet());
  EXPECT_EQ(keys(server), 10u);
  EXPECT_EQ(items(server), 10u);
}

TEST(Tracking, a_lower_limit_is_reached_by_and_by) {
  RunningServer server;
  WireClient reader = tracking_client(server);
  for (int i = 0; i < 20; ++i) reader.call({"GET", "k" + std::to_string(i)});
  server.connect().call({"CONFIG", "SET", "tracking-table-max-keys", "5"});
  for (int i = 20; i < 40; ++i) reader.send(encode({"GET", "k" + std::to_string(i)}));
  reader.send(encode({"ECHO", "end"}));
  while (reader.reply() != "$3\r\nend\r\n") {
  }
  EXPECT_EQ(keys(server), 5u);
}

TEST(Tracking, table_shrinks_by_itself_when_its_limit_is_lowered) {
  RunningServer server;
  WireClient reader = tracking_client(server);
  for (int i = 0; i < 2000; ++i) reader.send(encode({"GET", "k" + std::to_string(i)}));
  for (int i = 0; i < 2000; ++i) reader.reply();
  server.connect().call({"CONFIG", "SET", "tracking-table-max-keys", "5"});
  for (int i = 5; i < 2000; ++i) EXPECT_TRUE(reader.reply().starts_with(">2\r\n$10\r\ninvalidate"));
  EXPECT_EQ(keys(server), 5u);
}

TEST(Tracking, clients_that_have_gone_leave_the_list_of_a_key_that_never_changes) {
  RunningServer server;
  WireClient stays = tracking_client(server);
  for (int i = 0; i < 1000; ++i) {
    WireClient goes = tracking_client(server);
    goes.call({"GET", "popular"});
    goes.close();
    await_clients(server, 1);
  }
  EXPECT_LT(items(server), 10u);
}

TEST(Tracking, nothing_is_remembered_when_the_last_one_has_gone) {
  RunningServer server;
  {
    WireClient reader = tracking_client(server);
    reader.call({"MGET", "a", "b"});
    EXPECT_EQ(items(server), 2u);
  }
  await_clients(server, 0);
  EXPECT_EQ(keys(server), 0u);
  EXPECT_EQ(items(server), 0u);
}

TEST(Tracking, says_nothing_within_an_answer) {
  RunningServer server;
  WireClient a = tracking_client(server);
  a.call({"GET", "k"});
  a.call({"MULTI"});
  a.call({"SET", "k", "1"});
  a.call({"ECHO", "x"});
  EXPECT_EQ(a.call({"EXEC"}), "*2\r\n+OK\r\n$1\r\nx\r\n");
  EXPECT_EQ(a.reply(), invalidation("k"));
}

TEST(Tracking, a_key_that_expires_has_changed) {
  RunningServer server;
  WireClient reader = tracking_client(server);
  server.connect().call({"SET", "k", "v", "EX", "10"});
  reader.call({"GET", "k"});
  pass_ms(server, 20'000);
  EXPECT_EQ(reader.reply(), invalidation("k"));
}

TEST(Tracking, prefixes_are_forgotten_with_their_last_client) {
  RunningServer server;
  {
    WireClient a = server.connect();
    a.call({"HELLO", "3"});
    EXPECT_EQ(a.call({"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a", "PREFIX", "b"}), ok);
    EXPECT_EQ(server.run([](Server& s) { return s.tracking.prefixes(); }), 2u);
    server.connect().call({"MSET", "a1", "1", "b1", "1", "c1", "1"});
    const std::string first = a.reply();
    const std::string second = a.reply();
    EXPECT_EQ(std::min(first, second), invalidation("a1"));
    EXPECT_EQ(std::max(first, second), invalidation("b1"));
  }
  await_clients(server, 0);
  EXPECT_EQ(server.run([](Server& s) { return s.tracking.prefixes(); }), 0u);
}

}  // namespace
}  // namespace weir::kv::testing
