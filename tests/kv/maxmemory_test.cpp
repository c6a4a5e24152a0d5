// What happens at maxmemory: which commands are refused, what is evicted, and when.
#include <gtest/gtest.h>

#include <algorithm>

#include "kv/text/heap.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr const char* ok = "+OK\r\n";

TEST(MaxMemory, refuses_writes_or_evicts_as_the_policy_says) {
  RunningServer server;
  WireClient a = server.connect();
  const std::string value(20000, 'x');
  a.call({"SET", "k", value});
  a.call({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(a.call({"SET", "other", value}), "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  EXPECT_EQ(a.call({"STRLEN", "k"}), ":20000\r\n");
  EXPECT_EQ(a.call({"DEL", "k"}), ":1\r\n");
  a.call({"CONFIG", "SET", "maxmemory", "0"});
  for (int i = 0; i < 500; ++i) a.call({"SET", "k" + std::to_string(i), value});
  const std::string used = a.call({"INFO", "memory"});
  const std::size_t at = used.find("used_memory:") + 12;
  const long bytes = std::stol(used.substr(at));
  a.call(
      {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", std::to_string(bytes - 2'000'000)});
  for (int i = 0; i < 50; ++i) ASSERT_EQ(a.call({"SET", "n" + std::to_string(i), value}), ok);
  const std::size_t left = server.run([](Server& s) { return s.databases[0]->size(); });
  EXPECT_LT(left, 480u);
  EXPECT_GT(left, 300u);
}

// Far more keys than one command evicts.
class LoweredMaxMemory : public ::testing::TestWithParam<const char*> {
 protected:
  static void fill(Server& server) {
    Keyspace& db = *server.databases[0];
    for (int i = 0; i < 30'000; ++i) {
      db.set_expiry(db.insert("k" + std::to_string(i)), server.now_ms + 1'000'000 + i);
    }
  }
  // Room for half of them.
  static std::string half(RunningServer& server) {
    const std::size_t before = server.run([](Server&) { return used_memory(); });
    server.run(fill);
    const std::size_t full = server.run([](Server&) { return used_memory(); });
    return std::to_string(before + (full - before) / 2);
  }
};
TEST_P(LoweredMaxMemory, refuses_no_write_while_there_are_keys_to_evict) {
  RunningServer server;
  WireClient a = server.connect();
  const std::string less = half(server);
  a.send(encode({"CONFIG", "SET", "maxmemory-policy", GetParam(), "maxmemory", less}) +
         encode({"SET", "new", "v"}));
  EXPECT_EQ(a.reply(), ok);
  EXPECT_EQ(a.reply(), ok);
}
TEST_P(LoweredMaxMemory, is_kept_to_although_nobody_asks_for_anything) {
  RunningServer server;
  WireClient a = server.connect();
  const std::string less = half(server);
  EXPECT_EQ(a.call({"CONFIG", "SET", "maxmemory-policy", GetParam(), "maxmemory", less}), ok);
  while (
      server.run([](Server& s) { return used_memory() > static_cast<std::size_t>(s.settings.maxmemory); })) {
  }
  const std::size_t left = server.run([](Server& s) { return s.databases[0]->size(); });
  EXPECT_GT(left, 5'000u);
  EXPECT_LT(left, 25'000u);
}
INSTANTIATE_TEST_SUITE_P(Policies, LoweredMaxMemory,
                         ::testing::Values("allkeys-lru", "volatile-random", "volatile-ttl"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace weir::kv::testing
