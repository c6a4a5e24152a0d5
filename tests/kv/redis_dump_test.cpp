// DUMP and RESTORE between Debian's redis-server and this server, in both directions.
#include <gtest/gtest.h>

#include "tests/kv/every_type.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

RedisServer& theirs() {
  static RedisServer server;
  return server;
}

// The contents of a bulk reply.
std::string contents(const std::string& reply) {
  const std::size_t line = reply.find("\r\n") + 2;
  return reply.substr(line, reply.size() - line - 2);
}

class BothWays : public ::testing::TestWithParam<EveryType> {};

TEST_P(BothWays, a_dumped_value_is_restored_as_it_was) {
  RunningServer ours;
  WireClient weir = ours.connect();
  WireClient redis = theirs().connect();
  for (auto [from, to] : {std::pair{&redis, &weir}, std::pair{&weir, &redis}, std::pair{&weir, &weir}}) {
    from->call({"FLUSHALL"});
    for (const Words& words : GetParam().make) from->call(words);
    const std::string before = seen(*from, GetParam());
    const std::string encoding = encoding_of(*from, "k");
    const std::string payload = contents(from->call({"DUMP", "k"}));
    to->call({"FLUSHALL"});
    ASSERT_EQ(to->call({"RESTORE", "k", "0", payload}), "+OK\r\n");
    EXPECT_EQ(seen(*to, GetParam()), before);
    if (is_redis_7_0()) {
      EXPECT_EQ(encoding_of(*to, "k"), encoding);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Types, BothWays, ::testing::ValuesIn(every_type()),
                         [](const auto& instance) { return std::string(instance.param.name); });

// What DUMP returns for the value that the words make, on the given server.
std::string payload_of(WireClient& client, const Words& make) {
  client.call({"DEL", "k"});
  client.call(make);
  return contents(client.call({"DUMP", "k"}));
}

TEST(Restore, answers_as_redis_does) {
  RunningServer ours;
  WireClient weir = ours.connect();
  WireClient redis = theirs().connect();
  redis.call({"FLUSHALL"});
  const std::string payload = payload_of(redis, {"SET", "k", "text"});
  std::string spoiled = payload;
  spoiled[1] ^= 1;
  const std::vector<Words> calls = {
      {"RESTORE", "a", "0", payload},
      {"RESTORE", "a", "0", payload},
      {"RESTORE", "a", "0", payload, "REPLACE"},
      {"RESTORE", "a", "x", payload, "replace"},
      {"RESTORE", "b", "-1", payload},
      {"RESTORE", "b", "0", spoiled},
      {"RESTORE", "b", "0", ""},
      {"RESTORE", "b", "0", "short"},
      {"RESTORE", "b", "0", payload, "NOPE"},
      {"RESTORE", "b", "0", payload, "IDLETIME"},
      {"RESTORE", "b", "0", payload, "IDLETIME", "-1"},
      {"RESTORE", "b", "0", payload, "IDLETIME", "x"},
      {"RESTORE", "b", "0", payload, "FREQ", "256"},
      {"RESTORE", "b", "0", payload, "FREQ", "1", "IDLETIME", "1"},
      {"EXISTS", "b"},
      {"RESTORE", "b", "0", payload, "IDLETIME", "1000"},
      {"OBJECT", "IDLETIME", "b"},
      {"CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"},
      {"RESTORE", "b", "0", payload, "FREQ", "100", "REPLACE"},
      {"OBJECT", "FREQ", "b"},
      {"CONFIG", "SET", "maxmemory-policy", "noeviction"},
      {"RESTORE", "c", "1", payload, "ABSTTL"},
      {"EXISTS", "c"},
      {"RESTORE", "a", "1", payload, "ABSTTL", "REPLACE"},
      {"EXISTS", "a"},
      {"RESTORE", "c", "9999999999999", payload, "ABSTTL"},
      {"PEXPIRETIME", "c"},
      {"RESTORE", "d", "100000", payload},
      {"DUMP", "nosuch"},
      {"DUMP"},
  };
  for (const Words& words : calls) {
    std::string text;
    for (const std::string& word : words) text += word.substr(0, 20) + ' ';
    EXPECT_EQ(weir.call(words), redis.call(words)) << text;
  }
}

TEST(Restore, keeps_the_time_to_live) {
  RunningServer ours;
  WireClient weir = ours.connect();
  const std::string payload = payload_of(weir, {"SET", "k", "text"});
  const std::int64_t now_ms = ours.run([](Server& s) { return s.now_ms; });
  EXPECT_EQ(weir.call({"RESTORE", "a", "100000", payload}), "+OK\r\n");
  const std::int64_t until_ms = std::stoll(weir.call({"PEXPIRETIME", "a"}).substr(1));
  EXPECT_GE(until_ms, now_ms + 100000);
  EXPECT_EQ(weir.call({"RESTORE", "b", "9223372036854775807", payload}), "+OK\r\n");
  EXPECT_EQ(weir.call({"GET", "b"}), "$4\r\ntext\r\n");
}

// If several libraries exist already, which one is named depends on a table's order.
std::string either(std::string reply) {
  if (const std::size_t at = reply.find("Library two"); at != std::string::npos)
    reply.replace(at, 11, "Library one");
  return reply;
}

TEST(FunctionDump, goes_both_ways_and_its_policies_are_those_of_redis) {
  RunningServer ours;
  WireClient weir = ours.connect();
  WireClient redis = theirs().connect();
  const auto library = [](const std::string& name, const std::string& function, int result) {
    return "#!lua name=" + name + "\nredis.register_function('" + function + "', function() return " +
           std::to_string(result) + " end)";
  };
  redis.call({"FUNCTION", "FLUSH"});
  for (WireClient* client : {&weir, &redis}) {
    client->call({"FUNCTION", "LOAD", library("one", "f", 1)});
    client->call({"FUNCTION", "LOAD", library("two", "g", 2)});
  }
  const std::string from_redis = contents(redis.call({"FUNCTION", "DUMP"}));
  const std::string from_weir = contents(weir.call({"FUNCTION", "DUMP"}));
  const std::vector<Words> calls = {
      {"FUNCTION", "RESTORE", from_redis},
      {"FUNCTION", "RESTORE", from_weir},
      {"FUNCTION", "RESTORE", from_weir, "REPLACE"},
      {"FUNCTION", "RESTORE", from_redis, "replace"},
      {"FUNCTION", "FLUSH"},
      {"FUNCTION", "RESTORE", from_weir, "APPEND"},
      {"FCALL", "f", "0"},
      {"FUNCTION", "FLUSH"},
      {"FUNCTION", "LOAD", library("three", "f", 3)},
      {"FUNCTION", "RESTORE", from_redis, "REPLACE"},
      {"FCALL", "f", "0"},
      {"FUNCTION", "RESTORE", from_redis, "FLUSH"},
      {"FCALL", "f", "0"},
      {"FCALL", "g", "0"},
      {"FUNCTION", "RESTORE", from_redis, "NOPE"},
      {"FUNCTION", "RESTORE", "nonsense"},
      {"FUNCTION", "RESTORE", payload_of(redis, {"SET", "k", "v"})},
      {"FUNCTION", "RESTORE", from_redis, "FLUSH", "more"},
  };
  for (const Words& words : calls) {
    std::string text;
    for (const std::string& word : words) text += word.substr(0, 20) + ' ';
    EXPECT_EQ(either(weir.call(words)), either(redis.call(words))) << text;
  }
}

}  // namespace
}  // namespace weir::kv::testing
