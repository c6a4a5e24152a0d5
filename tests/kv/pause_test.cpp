// CLIENT PAUSE: which clients wait, for how long, and that the data does not change meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kv/running_server.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* ok = "+OK\r\n";

void wait_until_one_is_held_back(WireClient& manager) {
  while (manager.call({"CLIENT", "LIST"}).find(" flags=b") == std::string::npos) {
  }
}

TEST(ClientPause, holds_writes_back_and_lets_reads_through) {
  RunningServer server;
  WireClient writer = server.connect();
  WireClient manager = server.connect();
  manager.call({"CLIENT", "PAUSE", "100000", "WRITE"});
  EXPECT_EQ(writer.call({"GET", "k"}), "$-1\r\n");
  writer.send(encode({"SET", "k", "1"}) + "GET k\r\n");
  EXPECT_EQ(manager.call({"GET", "k"}), "$-1\r\n");
  EXPECT_TRUE(writer.quiet());
  EXPECT_EQ(manager.call({"CLIENT", "UNPAUSE"}), ok);
  EXPECT_EQ(writer.reply(), ok);
  EXPECT_EQ(writer.reply(), "$1\r\n1\r\n");
}

TEST(ClientPause, keeps_expired_keys_without_showing_them) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"SET", "k", "1", "PX", "1000"});
  a.call({"SET", "other", "1", "PX", "1000"});
  a.call({"CLIENT", "PAUSE", "100000", "WRITE"});
  server.advance_ms(2000);
  server.run([](Server& s) { s.tick(); });
  EXPECT_EQ(a.call({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(a.call({"TTL", "k"}), ":-2\r\n");
  EXPECT_EQ(a.call({"DBSIZE"}), ":2\r\n");
  EXPECT_THAT(a.call({"INFO", "stats"}), HasSubstr("\r\nexpired_keys:0\r\n"));
  a.call({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(a.call({"SET", "k", "2"}), ok);
  EXPECT_EQ(a.call({"GET", "k"}), "$1\r\n2\r\n");
  EXPECT_EQ(a.call({"TTL", "k"}), ":-1\r\n");
  server.run([](Server& s) { s.tick(); });
  EXPECT_EQ(a.call({"DBSIZE"}), ":1\r\n");
}

TEST(ClientPause, lets_a_write_replace_a_key_that_it_kept_once_its_time_is_over) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"SET", "k", "1", "PX", "1000"});
  a.call({"CLIENT", "PAUSE", "5000", "WRITE"});
  server.advance_ms(6000);
  EXPECT_EQ(a.call({"SET", "k", "2"}), ok) << "before the timer ends the pause";
  EXPECT_EQ(a.call({"DBSIZE"}), ":1\r\n");
  EXPECT_EQ(a.call({"TTL", "k"}), ":-1\r\n");
}

TEST(ClientPause, evicts_nothing) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"});
  a.call({"SET", "k", "1"});
  a.call({"CLIENT", "PAUSE", "100000", "WRITE"});
  a.call({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(a.call({"DBSIZE"}), ":1\r\n");
  a.call({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(a.call({"DBSIZE"}), ":0\r\n");
}

TEST(ClientPause, is_not_shortened_by_another) {
  RunningServer server;
  WireClient writer = server.connect();
  WireClient manager = server.connect();
  manager.call({"CLIENT", "PAUSE", "100000", "WRITE"});
  manager.call({"CLIENT", "PAUSE", "1", "WRITE"});
  server.advance_ms(1000);
  server.run([](Server& s) { s.tick(); });
  writer.send(encode({"SET", "k", "1"}));
  wait_until_one_is_held_back(manager);
  EXPECT_TRUE(writer.quiet());
  manager.call({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(writer.reply(), ok);
}

TEST(ClientPause, of_everything_is_not_made_one_of_writes) {
  RunningServer server;
  WireClient reader = server.connect();
  WireClient manager = server.connect();
  manager.call({"CLIENT", "PAUSE", "100000", "ALL"});
  manager.call({"CLIENT", "PAUSE", "100000", "WRITE"});
  reader.send(encode({"GET", "k"}));
  wait_until_one_is_held_back(manager);
  EXPECT_TRUE(reader.quiet());
  manager.call({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(reader.reply(), "$-1\r\n");
}

constexpr const char* beyond_the_clock = "9223372036854775807";

TEST(ClientPause, to_beyond_the_clock_is_none) {
  RunningServer server;
  WireClient a = server.connect();
  for (const char* what : {"WRITE", "ALL"}) {
    EXPECT_EQ(a.call({"CLIENT", "PAUSE", beyond_the_clock, what}), ok);
    EXPECT_EQ(a.call({"SET", "k", "1"}), ok) << what;
  }
  a.call({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"});
  a.call({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(a.call({"DBSIZE"}), ":0\r\n") << "the data is not to stay as it is";
}

TEST(ClientPause, to_beyond_the_clock_makes_another_stricter_and_no_longer) {
  RunningServer server;
  WireClient reader = server.connect();
  WireClient manager = server.connect();
  manager.call({"CLIENT", "PAUSE", "1000", "WRITE"});
  EXPECT_EQ(manager.call({"CLIENT", "PAUSE", beyond_the_clock, "ALL"}), ok);
  reader.send(encode({"GET", "k"}));
  wait_until_one_is_held_back(manager);
  server.advance_ms(2000);
  server.run([](Server& s) { s.tick(); });
  EXPECT_EQ(reader.reply(), "$-1\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
