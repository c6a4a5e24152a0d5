// CLIENT REPLY: what a client that wants no replies still receives.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr const char* ok = "+OK\r\n";

const std::string reply_off = encode({"CLIENT", "REPLY", "OFF"});
const std::string reply_on = encode({"CLIENT", "REPLY", "ON"});
const std::string reply_skip = encode({"CLIENT", "REPLY", "SKIP"});

TEST(ClientReply, off_is_silent_and_skip_skips_one) {
  RunningServer server;
  WireClient a = server.connect();
  a.send(encode({"CLIENT", "REPLY", "OFF"}) + encode({"PING"}) + encode({"CLIENT", "REPLY", "ON"}));
  EXPECT_EQ(a.reply(), ok);
  a.send(encode({"CLIENT", "REPLY", "SKIP"}) + encode({"ECHO", "lost"}) + encode({"ECHO", "seen"}));
  EXPECT_EQ(a.reply(), "$4\r\nseen\r\n");
}

TEST(ClientReply, off_lets_subscriptions_be_confirmed_and_messages_through) {
  RunningServer server;
  WireClient a = server.connect();
  a.send(reply_off + encode({"SUBSCRIBE", "news"}));
  EXPECT_EQ(a.reply(), "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
  EXPECT_EQ(server.connect().call({"PUBLISH", "news", "hi"}), ":1\r\n");
  EXPECT_EQ(a.reply(), "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
  a.send(encode({"PING"}) + encode({"PUNSUBSCRIBE"}) + encode({"UNSUBSCRIBE", "news"}));
  EXPECT_EQ(a.reply(), "*3\r\n$12\r\npunsubscribe\r\n$-1\r\n:1\r\n");
  EXPECT_EQ(a.reply(), "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n");
  a.send(reply_on);
  EXPECT_EQ(a.reply(), ok);
}

TEST(ClientReply, off_lets_through_what_a_client_publishes_to_itself) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"HELLO", "3"});
  a.call({"SUBSCRIBE", "me"});
  a.send(reply_skip + encode({"PUBLISH", "me", "1"}) + encode({"PING"}));
  EXPECT_EQ(a.reply(), ">3\r\n$7\r\nmessage\r\n$2\r\nme\r\n$1\r\n1\r\n");
  EXPECT_EQ(a.reply(), "+PONG\r\n");
}

TEST(ClientReply, skip_skips_one_that_waits_first) {
  RunningServer server;
  WireClient a = server.connect();
  a.send(reply_skip + encode({"BLPOP", "list", "0"}) + encode({"PING"}));
  while (!server.run([](Server& s) { return s.blocking.any(); })) std::this_thread::yield();
  server.connect().call({"RPUSH", "list", "x"});
  EXPECT_EQ(a.reply(), "+PONG\r\n");
}

TEST(ClientReply, off_is_silent_when_the_time_of_one_that_waits_is_up) {
  RunningServer server;
  WireClient a = server.connect();
  a.send(reply_off + encode({"BLPOP", "list", "0.001"}) + reply_on);
  EXPECT_EQ(a.reply(), ok);
}

TEST(ClientReply, off_lets_a_client_quit_and_break_the_protocol) {
  RunningServer server;
  for (const char* last : {"QUIT\r\n", "*x\r\n"}) {
    WireClient a = server.connect();
    a.send(reply_off + last);
    EXPECT_EQ(a.until_closed(), "");
  }
}

TEST(ClientReply, off_hides_what_others_do_from_a_monitor) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"MONITOR"});
  a.send(reply_off);
  const auto is_silent = [](Server& s) {
    return std::ranges::any_of(s.clients, [](const auto& c) { return c.second->replies() == Replies::off; });
  };
  while (!server.run(is_silent)) std::this_thread::yield();
  server.connect().call({"ECHO", "hidden"});
  a.send(reply_on + encode({"RESET"}));
  std::string heard;
  while (heard.find("+RESET") == std::string::npos) heard += a.reply();
  EXPECT_EQ(heard.find("hidden"), std::string::npos) << heard;
}

}  // namespace
}  // namespace weir::kv::testing
