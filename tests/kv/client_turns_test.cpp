// A client that has sent many long requests at once: others get their turn between them, and it loses
// nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

// Longer than a turn on any processor.
const std::string long_request = encode({"DEBUG", "SLEEP", "0.011"});
constexpr int in_pipeline = 1'000;  // eleven seconds without turns

Settings with_debug() {
  Settings settings = quiet_settings();
  settings.enable_debug_command = 1;
  return settings;
}

class ClientTurns : public ::testing::Test {
 protected:
  // Returns once the server is at work on them.
  WireClient pipelined() {
    std::string requests;
    for (int i = 0; i < in_pipeline; ++i) requests += long_request + encode({"INCR", "done"});
    WireClient busy = server.connect();
    busy.send(requests);
    while (done() == 0) {
    }
    return busy;
  }
  int done() {
    const std::string reply = other.call({"GET", "done"});
    return reply == "$-1\r\n" ? 0 : std::stoi(reply.substr(reply.find('\n') + 1));
  }

  RunningServer server{with_debug()};
  WireClient other = server.connect();
};

TEST_F(ClientTurns, others_are_served_between_the_requests_of_a_pipeline) {
  const WireClient busy = pipelined();
  EXPECT_LT(done(), in_pipeline);
}

TEST_F(ClientTurns, a_client_between_two_turns_can_be_killed) {
  WireClient busy = pipelined();
  EXPECT_EQ(other.call({"CLIENT", "KILL", "SKIPME", "yes"}), ":1\r\n");
  await_clients(server, 1);
  const int when_killed = done();
  EXPECT_LT(when_killed, in_pipeline);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(done(), when_killed);
}

TEST_F(ClientTurns, a_client_that_works_is_not_idle) {
  EXPECT_EQ(other.call({"CONFIG", "SET", "timeout", "10"}), "+OK\r\n");
  const WireClient busy = pipelined();
  const std::uint64_t newest = server.run([](Server& s) { return s.clients.rbegin()->first; });
  for (int i = 0; i < 3; ++i) {
    server.advance_ms(9'000);
    const int before = done();
    while (done() == before) ASSERT_LT(before, in_pipeline);
    pass_ms(server, 0);
  }
  EXPECT_TRUE(server.run([&](Server& s) { return s.clients.contains(newest); }));
}

TEST_F(ClientTurns, what_arrives_between_two_turns_is_answered_in_order) {
  WireClient busy = server.connect();
  std::string replies;
  for (int i = 0; i < 10; ++i) {
    const std::string text = std::to_string(i);
    busy.send(long_request + long_request + encode({"ECHO", text}));
    other.call({"PING"});
    replies += "+OK\r\n+OK\r\n$1\r\n" + text + "\r\n";
  }
  busy.end_sending();
  EXPECT_EQ(busy.until_closed(), replies);
}

TEST_F(ClientTurns, a_blocked_client_with_a_turn_to_come_is_served_once) {
  WireClient busy = server.connect();
  busy.send(long_request + encode({"BLPOP", "list", "0"}) + long_request + encode({"BLPOP", "list", "0"}) +
            encode({"ECHO", "end"}));
  const std::string served = "*2\r\n$4\r\nlist\r\n$1\r\n";
  EXPECT_EQ(other.call({"RPUSH", "list", "a", "b", "c"}), ":3\r\n");
  busy.end_sending();
  EXPECT_EQ(busy.until_closed(), "+OK\r\n" + served + "a\r\n+OK\r\n" + served + "b\r\n$3\r\nend\r\n");
  EXPECT_EQ(other.call({"LRANGE", "list", "0", "-1"}), "*1\r\n$1\r\nc\r\n");
}

TEST_F(ClientTurns, clients_that_a_pause_held_back_go_on_one_at_a_time) {
  EXPECT_EQ(other.call({"CLIENT", "PAUSE", "100000", "WRITE"}), "+OK\r\n");
  constexpr int crowd = 300;
  std::vector<WireClient> held;
  for (int i = 0; i < crowd; ++i) {
    held.push_back(server.connect());
    held.back().send(encode({"INCR", "done"}) + long_request);
  }
  while (server.run([](Server& s) {
    return std::ranges::count_if(s.clients, [](const auto& one) { return one.second->paused(); });
  }) < crowd) {
  }
  EXPECT_EQ(other.call({"CLIENT", "UNPAUSE"}), "+OK\r\n");
  EXPECT_LT(done(), crowd);
  for (WireClient& client : held) {
    EXPECT_EQ(client.reply().front(), ':');
    EXPECT_EQ(client.reply(), "+OK\r\n");
  }
  EXPECT_EQ(done(), crowd);
}

}  // namespace
}  // namespace weir::kv::testing
