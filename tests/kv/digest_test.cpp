// DEBUG DIGEST equals Redis's, bit for bit: Debian's redis-server is the reference.
#include <gtest/gtest.h>

#include "tests/kv/redis_server.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

TEST(Digest, is_the_one_that_redis_computes) {
  const RedisServer redis({"--enable-debug-command", "yes"});
  Settings settings = quiet_settings();
  settings.enable_debug_command = 1;
  RunningServer weir(std::move(settings));
  WireClient theirs = redis.connect();
  WireClient ours = weir.connect();
  const auto expect_same = [&](const std::vector<std::string>& words) {
    EXPECT_EQ(ours.call(words), theirs.call(words)) << words[0] << ' ' << words[1];
  };
  const std::vector<std::vector<std::string>> commands{
      {"DEBUG", "DIGEST"},
      {"SET", "text", "value"},
      {"SET", "number", "12345"},
      {"SET", "expiring", "value", "EX", "1000"},
      {"RPUSH", "list", "a", "b", "1", std::string(5000, 'x')},
      {"SADD", "integers", "5", "1", "-7"},
      {"SADD", "members", "a", "b", "c"},
      {"HSET", "hash", "a", "1", "b", std::string(100, 'x')},
      {"ZADD", "zset", "0.1", "a", "-inf", "b", "3", "c", "1e300", "7"},
      {"XADD", "stream", "1-1", "a", "1", "b", "2"},
      {"XADD", "stream", "2-1", "a", "text"},
      {"XDEL", "stream", "1-1"},
      {"DEBUG", "DIGEST"},
      {"DEBUG", "DIGEST-VALUE", "stream", "text", "number", "expiring", "list", "integers", "members", "hash",
       "zset", "none"},
      {"SELECT", "3"},
      {"SET", "text", "value"},
      {"DEBUG", "DIGEST"},
      {"debug", "nonsense"},
      {"debug", "digest", "more"},
  };
  for (const auto& words : commands) expect_same(words);
}

TEST(Digest, is_refused_unless_the_setting_allows_it) {
  const RedisServer redis;
  RunningServer weir;
  WireClient theirs = redis.connect();
  WireClient ours = weir.connect();
  EXPECT_EQ(ours.call({"DEBUG", "DIGEST"}), theirs.call({"DEBUG", "DIGEST"}));
  Settings settings = quiet_settings();
  settings.enable_debug_command = 2;
  RunningServer lets_local_in(std::move(settings));
  EXPECT_EQ(lets_local_in.connect().call({"DEBUG", "DIGEST"})[0], '+');
}

}  // namespace
}  // namespace weir::kv::testing
