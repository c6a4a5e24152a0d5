// When the clock of the system is set, by NTP, by an administrator, or because the machine slept: what waits
// waits as long as before, and keys expire at their time of the day. And time stands still within a script
// and a transaction.
#include <gtest/gtest.h>

#include "kv/replication/replication.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr std::int64_t hour_ms = 3'600'000;
constexpr const char* ok = "+OK\r\n";

struct Step {
  const char* name;
  std::int64_t by_ms;
};
constexpr Step steps[] = {
    {"two_hours_ahead", 2 * hour_ms}, {"one_hour_back", -hour_ms}, {"a_day_ahead", 24 * hour_ms}};

class SetClock : public ::testing::TestWithParam<Step> {
 protected:
  SetClock() { server_.stop_clock(); }

  // Waits until the server has taken the command, and waits.
  WireClient waiting(const std::vector<std::string>& words) {
    WireClient client = server_.connect();
    client.send(encode(words));
    while (server_.run([](Server& s) { return s.blocking.size(); }) == 0) std::this_thread::yield();
    return client;
  }
  void set() { server_.set_clock_by_ms(GetParam().by_ms); }
  void pass(std::int64_t ms) { pass_ms(server_, ms); }

  RunningServer server_;
};

struct Wait {
  const char* name;
  std::vector<std::string> words;  // for one second
  const char* reply;
};

TEST_P(SetClock, leaves_a_wait_as_long_as_it_was) {
  const Wait waits[] = {
      {"BLPOP", {"BLPOP", "k", "1"}, "*-1\r\n"},
      {"BLMOVE", {"BLMOVE", "k", "other", "LEFT", "LEFT", "1"}, "*-1\r\n"},
      {"BZPOPMIN", {"BZPOPMIN", "k", "1"}, "*-1\r\n"},
      {"XREAD", {"XREAD", "BLOCK", "1000", "STREAMS", "k", "$"}, "*-1\r\n"},
      {"WAIT", {"WAIT", "1", "1000"}, ":0\r\n"},
      {"WAITAOF", {"WAITAOF", "0", "1", "1000"}, "*2\r\n:0\r\n:0\r\n"},
  };
  for (const Wait& wait : waits) {
    SCOPED_TRACE(wait.name);
    WireClient client = waiting(wait.words);
    set();
    pass(999);
    EXPECT_TRUE(client.quiet());
    pass(1);
    EXPECT_EQ(client.reply(), wait.reply);
  }
}

TEST_P(SetClock, leaves_client_pause_as_long_as_it_was) {
  WireClient client = server_.connect();
  WireClient other = server_.connect();
  ASSERT_EQ(other.call({"CLIENT", "PAUSE", "1000", "ALL"}), ok);
  set();
  pass(999);
  client.send(encode({"PING"}));
  EXPECT_EQ(other.call({"CLIENT", "PAUSE", "1", "ALL"}), ok);
  EXPECT_TRUE(client.quiet());
  pass(1);
  EXPECT_EQ(client.reply(), "+PONG\r\n");
}

TEST_P(SetClock, closes_no_client_that_is_not_idle) {
  WireClient client = server_.connect();
  ASSERT_EQ(client.call({"CONFIG", "SET", "timeout", "20"}), ok);
  set();
  pass(20'000);
  EXPECT_EQ(client.call({"PING"}), "+PONG\r\n");
  pass(20'001);
  EXPECT_EQ(client.until_closed(), "");
}

TEST_P(SetClock, closes_no_replica_that_was_heard_of) {
  WireClient client = server_.connect();
  WireClient replica = server_.connect();
  replica.send(encode({"REPLCONF", "capa", "eof"}) + encode({"PSYNC", "?", "-1"}));
  replica.through("$EOF:");
  replica.through(replica.exactly(repl::History::id_size));
  set();
  server_.run([](Server& s) {
    s.refresh_time();
    s.replication->look_at_clock();
  });
  EXPECT_EQ(fact(client, "replication", "connected_slaves"), "1");
}

TEST_P(SetClock, moves_when_keys_expire) {
  WireClient client = server_.connect();
  client.call({"SET", "k", "v", "PX", std::to_string(3 * hour_ms)});
  set();
  const std::int64_t left = 3 * hour_ms - GetParam().by_ms;
  EXPECT_EQ(client.call({"PTTL", "k"}), left > 0 ? ':' + std::to_string(left) + "\r\n" : ":-2\r\n");
}

TEST_P(SetClock, leaves_the_time_since_last_use_and_start_alone) {
  WireClient client = server_.connect();
  client.call({"SET", "k", "v"});
  set();
  EXPECT_EQ(client.call({"OBJECT", "IDLETIME", "k"}), ":0\r\n");
  EXPECT_EQ(fact(client, "server", "uptime_in_seconds"), "0");
  EXPECT_NE(client.call({"CLIENT", "INFO"}).find(" age=0 idle=0 "), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(By, SetClock, ::testing::ValuesIn(steps),
                         [](const auto& instance) { return std::string(instance.param.name); });

// The timer's own wait, which the tests above do not see.
TEST(ServersTimer, ends_a_short_wait_although_keys_expire_an_hour_later) {
  RunningServer server;
  WireClient client = server.connect();
  client.call({"SET", "k", "v", "EX", "3000"});
  server.set_clock_by_ms(2 * hour_ms);
  EXPECT_EQ(client.call({"BLPOP", "other", "0.05"}), "*-1\r\n");
}

TEST(ServersTimer, notices_that_the_clock_is_set_beyond_a_keys_time) {
  RunningServer server;
  WireClient listener = server.connect();
  WireClient client = server.connect();
  client.call({"CONFIG", "SET", "notify-keyspace-events", "Ex"});
  listener.call({"SUBSCRIBE", "__keyevent@0__:expired"});
  client.call({"SET", "k", "v", "EX", "3000"});
  server.set_clock_by_ms(hour_ms);
  EXPECT_EQ(listener.reply(), "*3\r\n$7\r\nmessage\r\n$22\r\n__keyevent@0__:expired\r\n$1\r\nk\r\n");
}

// Long enough for the clock to move on.
constexpr const char* busy = "for i = 1, 3000000 do end ";

TEST(TimeInAScript, stands_still) {
  RunningServer server;
  WireClient client = server.connect();
  const std::string script = std::string("local a = redis.call('time') ") + busy +
                             "local b = redis.call('time') return tostring(a[1] == b[1] and a[2] == b[2])";
  EXPECT_EQ(client.call({"EVAL", script, "0"}), "$4\r\ntrue\r\n");
}

TEST(TimeInAScript, stands_still_beside_a_monitor) {
  RunningServer server;
  WireClient monitor = server.connect();
  monitor.call({"MONITOR"});
  WireClient client = server.connect();
  client.call({"SET", "k", "v", "PX", "40"});
  const std::string script = std::string("local a = redis.call('get', KEYS[1]) ") + busy +
                             "redis.call('time') return {a, redis.call('get', KEYS[1])}";
  const std::string seen = client.call({"EVAL", script, "1", "k"});
  EXPECT_TRUE(seen == "*2\r\n$1\r\nv\r\n$1\r\nv\r\n" || seen == "*2\r\n$-1\r\n$-1\r\n") << seen;
}

TEST(TimeInATransaction, stands_still) {
  RunningServer server;
  WireClient client = server.connect();
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"MULTI"}, {"TIME"}, {"EVAL", busy, "0"}, {"TIME"}, {"EVAL", "return redis.call('time')", "0"}})
    client.call(words);
  const std::vector<std::string> replies = elements(client.call({"EXEC"}));
  ASSERT_EQ(replies.size(), 5u);
  EXPECT_EQ(replies[1], replies[3]);
  EXPECT_EQ(replies[1], replies[4]);
}

}  // namespace
}  // namespace weir::kv::testing
