// Crowds: the cost of a push while thousands wait, of closing a client that listened to many channels, and of
// a few active clients among a million.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kv/commands/random_choice.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

// Of thousands that wait for one key, a push should only touch those that it has elements for. That a waiter
// was tried shows as a use of another key that it waits for.
TEST(Blocking, tries_no_more_waiters_than_the_key_can_serve) {
  RunningServer server;
  WireClient first = server.connect();
  WireClient second = server.connect();
  WireClient other = server.connect();
  const auto wait_for = [&](std::size_t blocked) {
    while (server.run([](Server& s) { return s.blocking.size(); }) != blocked) {
    }
  };
  first.send(encode({"BLPOP", "q", "0"}));
  wait_for(1);
  second.send(encode({"BLPOP", "text", "q", "text", "q", "0"}));
  wait_for(2);
  other.call({"SET", "text", "is no list"});
  server.advance_ms(5000);
  other.call({"RPUSH", "q", "a"});
  EXPECT_EQ(first.reply(), "*2\r\n$1\r\nq\r\n$1\r\na\r\n");
  EXPECT_EQ(other.call({"OBJECT", "IDLETIME", "text"}), ":5\r\n") << "no element was left";
  other.call({"ZADD", "q", "1", "a"});
  EXPECT_EQ(other.call({"OBJECT", "IDLETIME", "text"}), ":5\r\n") << "it waits for lists";
  other.call({"DEL", "q"});
  other.call({"RPUSH", "q", "b"});
  EXPECT_EQ(second.reply(), "*2\r\n$1\r\nq\r\n$1\r\nb\r\n");
  EXPECT_EQ(server.run([](Server& s) { return s.blocking.size(); }), 0u);
}

// Processor time of this thread.
double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// It used to go through the whole table for each of the channels, which blocked the server for ten seconds.
TEST(PubSub, leaving_many_channels_at_once_takes_a_moment) {
  static constexpr std::size_t channels = 200'000;
  RunningServer server;
  WireClient a = server.connect();
  a.call({"PING"});
  const double spent_s = server.run([](Server& s) {
    Client& client = *s.clients.begin()->second;
    for (std::size_t i = 0; i < channels; ++i)
      s.pubsub.subscribe(client, PubSub::Kind::channel, "channel " + std::to_string(i));
    EXPECT_EQ(client.subscriptions.count(), channels);
    const double begin_s = cpu_s();
    s.pubsub.unsubscribe_all(client);
    EXPECT_EQ(client.subscriptions.count(), 0u);
    EXPECT_TRUE(s.pubsub.topics(PubSub::Kind::channel).empty());
    return cpu_s() - begin_s;
  });
  EXPECT_LT(spent_s, 2);
}

TEST(RandomChoice, of_few_among_many_does_not_look_at_the_others) {
  std::uint64_t next = 0;
  const auto draw = [&next] { return static_cast<int>(next++ / 2); };  // each value comes twice
  const auto chosen = choose_different<absl::flat_hash_set<int>>(
      1'000'000, 1000, draw, std::identity(),
      []() -> std::vector<int> { throw std::logic_error("it looks at all of them"); }, [] { return 0u; });
  EXPECT_EQ(std::set(chosen.begin(), chosen.end()).size(), 1000u);
}

TEST(RandomChoice, gives_as_many_different_ones_as_there_are) {
  RunningServer server;
  WireClient a = server.connect();
  constexpr int size = 999;
  for (int i = 0; i < size; ++i) {
    const std::string number = std::to_string(i);
    a.call({"SADD", "numbers", number});
    a.call({"SADD", "texts", "t" + number});
    a.call({"HSET", "hash", "f" + number, "v"});
    a.call({"ZADD", "zset", number, "m" + number});
  }
  const std::pair<const char*, const char*> cases[] = {
      {"SRANDMEMBER", "numbers"}, {"SRANDMEMBER", "texts"}, {"HRANDFIELD", "hash"}, {"ZRANDMEMBER", "zset"}};
  for (const auto& [command, key] : cases) {
    for (const int count : {1, 2, size / 3, size / 3 + 1, size - 1, size, size + 1}) {
      const std::vector<std::string> got = elements(a.call({command, key, std::to_string(count)}));
      EXPECT_EQ(std::set(got.begin() + 1, got.end()).size(), static_cast<std::size_t>(std::min(count, size)))
          << command << ' ' << key << ' ' << count;
      EXPECT_EQ(got.size() - 1, static_cast<std::size_t>(std::min(count, size)));
    }
  }
}

TEST(PubSub, unsubscribe_from_everything_counts_down) {
  RunningServer server;
  WireClient a = server.connect();
  for (const char* channel : {"one", "two", "three"}) a.call({"SUBSCRIBE", channel});
  a.call({"PSUBSCRIBE", "p*"});
  a.send(encode({"UNSUBSCRIBE"}));
  std::vector<std::string> left;
  for (int i = 0; i < 3; ++i) left.push_back(elements(a.reply()).back());
  EXPECT_THAT(left, ::testing::ElementsAre(":3\r\n", ":2\r\n", ":1\r\n")) << "the pattern stays";
  EXPECT_EQ(a.call({"UNSUBSCRIBE"}), "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:1\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
