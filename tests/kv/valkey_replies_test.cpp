// What the suite of Valkey 9.1 found missing or answered otherwise, and Redis 7.0 lacks.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "tests/kv/written_replies.hpp"

namespace weir::kv::testing {
namespace {

class ValkeyReplies : public WrittenReplies {};

TEST_F(ValkeyReplies, scripts_errors_name_the_library_they_called) {
  const auto loads = [](const std::string& name) {
    return "FUNCTION LOAD \"#!lua name=l\n" + name + ".register_function()\"";
  };
  expect_replies({
      {{}, "EVAL \"return server.pcall('nosuch').err\" 0", "ERR Unknown command called from script"},
      {{}, "EVAL \"return redis.pcall('nosuch').err\" 0", "ERR Unknown Redis command called from script"},
      {{},
       "EVAL \"return server.pcall('get').err\" 0",
       "ERR Wrong number of args calling command from script"},
      {{},
       loads("server"),
       "-ERR Error registering functions: ERR wrong number of arguments to server.register_function"},
      {{},
       loads("redis"),
       "-ERR Error registering functions: ERR wrong number of arguments to redis.register_function"},
  });
}

TEST_F(ValkeyReplies, scripts_have_the_clock_of_os_and_nothing_else_of_it) {
  expect_replies({
      {{}, "EVAL \"return type(os.clock())\" 0", "number"},
      {{}, "EVAL \"return os.execute == nil and os.exit == nil and os.getenv == nil\" 0", ":1"},
      {{},
       "EVAL \"return select(2, pcall(function() os.clock = nil end))\" 0",
       "user_script:1: Attempt to modify a readonly table"},
      {{},
       "EVAL \"return select(2, pcall(function() getmetatable(_G).__index = {} end))\" 0",
       "user_script:1: Attempt to modify a readonly table"},
  });
}

TEST_F(ValkeyReplies, scripts_find_a_metatable_that_keeps_nothing) {
  expect_replies({
      {{}, "EVAL \"return getmetatable(getmetatable(_G)) == false\" 0", ":1"},
      {{}, "EVAL \"pcall(table.insert, getmetatable(_G), 1) return #getmetatable('')\" 0", ":0"},
      {{}, "EVAL \"return next(getmetatable(_G)) == nil\" 0", ":1"},
      {{},
       "EVAL \"return select(2, pcall(rawset, getmetatable(_G), 'a', 1))\" 0",
       "Attempt to modify a readonly table"},
  });
}

TEST_F(ValkeyReplies, scripts_pass_thousands_of_arguments) {
  expect_replies({
      {{},
       "EVAL \"local a = {} for i = 1, 7990 do a[i] = i end return redis.call('lpush', KEYS[1], unpack(a))\" "
       "1 l",
       ":7990"},
  });
}

TEST_F(ValkeyReplies, zscan_leaves_the_scores_out) {
  expect_replies({
      {{"ZADD z 1 a 2 b"}, "ZSCAN z 0 NOSCORES", "*2 0 *2 a b"},
      {{"ZADD z 1 a 2 b"}, "ZSCAN z 0 NOSCORES COUNT 10 MATCH b", "*2 0 *1 b"},
      {{"ZADD z 1 a"}, "ZSCAN z 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN"},
      {{"SADD s a"}, "SSCAN s 0 NOSCORES", syntax_error},
  });
}

TEST_F(ValkeyReplies, bit_ranges_are_checked_without_a_key) {
  expect_replies({
      {{"SET s foobar"}, "BITCOUNT s 1", ":22"},
      {{}, "BITCOUNT nothing 0 1 FOO", syntax_error},
      {{}, "BITCOUNT nothing a b", "-ERR value is not an integer or out of range"},
      {{}, "BITPOS nothing 1 a", "-ERR value is not an integer or out of range"},
      {{}, "BITPOS nothing 1 0 1", ":-1"},
      {{}, "BITPOS nothing 0 0 1", ":0"},
      {{}, "GETEX nothing EX abc", "-ERR value is not an integer or out of range"},
  });
}

TEST_F(ValkeyReplies, clients_learn_the_zone_of_the_server) {
  EXPECT_EQ(say("HELLO").find("availability_zone"), std::string::npos);
  say("CONFIG SET availability-zone rack1");
  EXPECT_NE(say("HELLO").find("availability_zone rack1"), std::string::npos);
}

TEST_F(ValkeyReplies, client_lines_count_traffic_and_commands) {
  const auto figure = [](const std::string& line, const std::string& name) {
    return std::stoll(line.substr(line.find(' ' + name + '=') + name.size() + 2));
  };
  const std::string first = say("CLIENT INFO");
  const std::string second = say("CLIENT INFO");
  EXPECT_EQ(figure(second, "tot-net-in") - figure(first, "tot-net-in"),
            static_cast<long long>(encode({"CLIENT", "INFO"}).size()));
  EXPECT_GT(figure(second, "tot-net-out"), figure(first, "tot-net-out"));
  EXPECT_EQ(figure(second, "tot-cmds") - figure(first, "tot-cmds"), 1);
  say("WATCH a b");
  EXPECT_EQ(figure(say("CLIENT INFO"), "watch"), 2);
}

TEST_F(ValkeyReplies, client_filters_refuse_unknown_flags) {
  expect_replies({
      {{}, "CLIENT LIST FLAGS NQ", "-ERR Unknown flags found in the provided filter: NQ"},
      {{}, "CLIENT KILL FLAGS ?", "-ERR Unknown flags found in the provided filter: ?"},
  });
}

TEST_F(ValkeyReplies, a_waiting_command_is_logged_when_it_is_over) {
  WireClient waits = server.connect();
  say("CONFIG SET slowlog-log-slower-than 0");
  waits.send(encode({"BLPOP", "l", "0"}));
  while (say("INFO clients").find("blocked_clients:1") == std::string::npos) {
  }
  EXPECT_EQ(say("SLOWLOG GET -1").find("BLPOP"), std::string::npos);
  say("RPUSH l x");
  waits.reply();
  EXPECT_NE(say("SLOWLOG GET -1").find("*3 BLPOP l 0"), std::string::npos);
}

TEST_F(ValkeyReplies, info_says_what_is_paused) {
  EXPECT_NE(client.call({"INFO", "clients"}).find("paused_reason:none\r\npaused_actions:none\r\n"),
            std::string::npos);
  say("CLIENT PAUSE 10000 WRITE");
  const std::string text = client.call({"INFO", "clients"});
  EXPECT_NE(text.find("paused_reason:client_pause\r\npaused_actions:write\r\npaused_timeout_milliseconds:"),
            std::string::npos)
      << text;
}

TEST_F(ValkeyReplies, xsetid_keeps_deleted_ids_from_coming_back) {
  expect_replies({
      {{"XADD x 1-1 a 1", "XADD x 1-2 a 1", "XDEL x 1-2"},
       "XSETID x 1-1",
       "-ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"},
      {{"XADD x 1-1 a 1", "XADD x 1-2 a 1", "XDEL x 1-2"}, "XSETID x 1-2", "+OK"},
  });
}

TEST_F(ValkeyReplies, tracking_follows_what_a_script_reads) {
  WireClient writer = server.connect();
  client.call({"HELLO", "3"});
  client.call({"CLIENT", "TRACKING", "ON"});
  client.call({"EVAL", "return redis.call('get', KEYS[2])", "2", "a", "b"});
  writer.call({"MSET", "a", "1"});
  EXPECT_EQ(client.call({"PING"}), "+PONG\r\n");
  writer.call({"MSET", "b", "1"});
  EXPECT_EQ(client.reply(), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nb\r\n");
}

TEST_F(ValkeyReplies, sets_of_integers_intersect_at_each_width) {
  const std::vector<std::string> widths{"1", "40000", "5000000000"};
  for (const std::string& wide : widths) {
    for (const std::string& other : widths) {
      SCOPED_TRACE(wide + ' ' + other);
      expect_replies({
          {{"SADD a 3 -7 12 100 " + wide, "SADD b 100 -7 4 " + other},
           "SINTERSTORE c a b",
           wide == other ? ":3" : ":2"},
          {{"SADD a 3 -7 12 100 " + wide, "SADD b 100 -7 4 " + other},
           "SINTER b a",
           wide == other ? (wide == "1" ? "*3 -7 1 100" : "*3 -7 100 " + wide) : "*2 -7 100"},
          {{"SADD a 3 -7 12 100 " + wide, "SADD b 100 -7 4 " + other}, "SINTERCARD 2 a b LIMIT 1", ":1"},
      });
    }
  }
  expect_replies(
      {{{"SADD a 1 2"}, "SINTER a nothing", "*0"}, {{"SADD a 1 2", "SADD b x 2"}, "SINTER a b", "*1 2"}});
}

TEST_F(ValkeyReplies, sets_of_integers_intersect_as_sorted_rows) {
  std::uint32_t state = 53;
  const auto random = [&state](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  for (int round = 0; round < 50; ++round) {
    say("FLUSHALL");
    std::set<int> rows[2];
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t size = 1 + random(i == 0 ? 8 : 300);
      while (rows[i].size() < size) rows[i].insert(static_cast<int>(random(400)) - 100);
      std::string line = i == 0 ? "SADD a" : "SADD b";
      for (const int number : rows[i]) line += ' ' + std::to_string(number);
      say(line);
    }
    std::vector<int> common;
    std::ranges::set_intersection(rows[0], rows[1], std::back_inserter(common));
    std::string wanted = "*" + std::to_string(common.size());
    for (const int number : common) wanted += ' ' + std::to_string(number);
    EXPECT_EQ(say("SINTER a b"), wanted) << "round " << round;
  }
}

}  // namespace
}  // namespace weir::kv::testing
