// Many at once: what a push costs where thousands wait.
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

}  // namespace
}  // namespace weir::kv::testing
