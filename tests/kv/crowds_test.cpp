// Many at once: what a push costs where thousands wait, and what it costs when one goes who listened to much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

// Of thousands that wait for one key, a push should concern those it has elements for. That a waiter was
// tried shows in the use of another key that it waits for, too.
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

// It went through the whole table for each of the channels: some ten seconds, in which nobody was served.
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
