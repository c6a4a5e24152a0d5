// Scripts that try to keep the server for themselves, to overflow its stack or to fill its memory. Each ends
// with its error or is killed, and another client is answered meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/kv/running_server.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {
namespace {

using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* ok = "+OK\r\n";
// Those that are killed would go on for minutes at least. A machine may be busy with other things for a
// while.
constexpr std::chrono::seconds longest_wait{5};

Settings small_and_impatient() {
  Settings settings = quiet_settings();
  settings.busy_reply_threshold_ms = 1;
  settings.lua_memory_limit = 64 << 20;
  return settings;
}

// Asks until the server is busy, and kills what makes it busy.
void kill_when_busy(WireClient& other, const std::string& container) {
  auto asked = steady_clock::now();
  for (std::string reply; !reply.starts_with("-BUSY"); asked = steady_clock::now()) {
    reply = other.call({"PING"});
    ASSERT_LT(steady_clock::now() - asked, longest_wait);
  }
  EXPECT_EQ(other.call({container, "KILL"}), ok);
  EXPECT_LT(steady_clock::now() - asked, longest_wait);
}

constexpr const char* endless[] = {
    "while true do end",
    "return string.find(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b')",
    "return string.find(('('):rep(1e6), '%b()')",
    "local s = ('a'):rep(1e6) return string.find(s, '.-.-.-b')",
    "local s = ('a'):rep(1e6) return s:gsub('.-.-.-b', '')",
    "local s = ('a'):rep(1e6) for x in s:gmatch('.-.-.-b') do end",
    "return string.find(('a'):rep(2e6), ('a'):rep(1e6) .. 'b', 1, true)",
    "table.insert({}, -2147483647, 1)",
    "local t = {} for i = 1, 2e5 do t[i] = 1 end while true do table.remove(t, 1) table.insert(t, 1, 1) end",
    "local t = {} for i = 1, 5e5 do t[i] = i % 7 end while true do table.sort(t) end",
    "local s = ('x'):rep(2e6) while true do local t = s .. 'x' end",
    "local a, b = ('\\0'):rep(3e6) .. '1', ('\\0'):rep(3e6) .. '2' while true do local t = a < b end",
    "local s = ('x'):rep(2e6) while true do redis.sha1hex(s) end",
    "local s = ('x'):rep(1e6) while true do s:upper() s:lower() s:reverse() s:format() end",
    "local s = ('x = 1 '):rep(5e5) while true do loadstring(s) end",
    "local s = '[' .. ('[],'):rep(1e5) .. '1]' while true do cjson.decode(s) end",
    "local t = {} for i = 1, 1e5 do t[i] = i end while true do cmsgpack.unpack(cmsgpack.pack(t)) end",
    "local f = ('i'):rep(1e6) while true do struct.size(f) end",
    "local t = {} for i = 1, 1e6 do t[i] = i end for i = 1, 1e6 do t[i] = nil end while true do next(t) end",
    "while true do collectgarbage() end",
    "while true do coroutine.wrap(function() for i = 1, 9e4 do end end)() end",
    "local function f() for i = 1, 100 do coroutine.wrap(function() for i = 1, 9e4 do end end)() end end "
    "while true do coroutine.wrap(f)() end",
    "while true do pcall(string.rep, '', 2^31 - 1) end",
    "local t = {} while true do pcall(table.insert, t, -2147483647, 1) end",
    "while true do pcall(string.find, ('a'):rep(1e5), '.-.-.-b') end",
};

TEST(HostileScript, without_end_is_killed_and_others_are_answered) {
  for (const char* text : endless) {
    SCOPED_TRACE(text);
    RunningServer server(small_and_impatient());
    WireClient slow = server.connect();
    WireClient other = server.connect();
    slow.send(encode({"EVAL", text, "0"}));
    ASSERT_NO_FATAL_FAILURE(kill_when_busy(other, "SCRIPT"));
    EXPECT_THAT(slow.reply(), HasSubstr("Script killed by user with SCRIPT KILL"));
    EXPECT_EQ(other.call({"PING"}), "+PONG\r\n");
  }
}

TEST(HostileFunction, without_end_is_killed_and_others_are_answered) {
  RunningServer server(small_and_impatient());
  WireClient slow = server.connect();
  WireClient other = server.connect();
  slow.call({"FUNCTION", "LOAD",
             "#!lua name=lib\nredis.register_function('f', function() "
             "return string.find(('a'):rep(1e6), '.-.-.-b') end)"});
  slow.send(encode({"FCALL", "f", "0"}));
  ASSERT_NO_FATAL_FAILURE(kill_when_busy(other, "FUNCTION"));
  EXPECT_THAT(slow.reply(), HasSubstr("Script killed by user"));
}

TEST(HostileScript, that_wants_too_much_gets_an_error) {
  struct Row {
    const char* text;
    const char* error;
  };
  constexpr Row rows[] = {
      {"return string.find(string.rep('a', 200000), string.rep('a?', 200000))", "pattern too complex"},
      {"return string.gsub(string.rep('a', 200000), string.rep('a?', 200000), '')", "pattern too complex"},
      {"return string.rep('x', 2147483647)", "not enough memory"},
      {"local t = {} for i = 1, 100 do t[i] = t end return #cmsgpack.pack(t)", "not enough memory"},
      {"local s = ('x'):rep(1e6) return #struct.pack(('s'):rep(100), unpack((function() local t = {} "
       "for i = 1, 100 do t[i] = s end return t end)()))",
       "not enough memory"},
      {"local t = {} t[1] = t t[2] = t return t", "larger than lua-memory-limit"},
      {"local t = {} for i = 1, 30 do t = {t, t} end return t", "larger than lua-memory-limit"},
      {"return {map = setmetatable({}, {}), 1} and error(setmetatable({}, {__index = function() error('x') "
       "end}))",
       "ERR unknown error"},
      {"error(setmetatable({}, {__newindex = function() error('x') end}))", "ERR"},
  };
  Settings settings = small_and_impatient();
  settings.lua_memory_limit = 8 << 20;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    RunningServer server(settings);
    WireClient client = server.connect();
    const std::string reply = client.call({"EVAL", row.text, "0"});
    EXPECT_THAT(reply, StartsWith("-")) << row.text;
    EXPECT_THAT(reply, HasSubstr(row.error)) << row.text;
    EXPECT_EQ(client.call({"PING"}), "+PONG\r\n") << row.text;
  }
}

TEST(HostileScript, with_arguments_beyond_its_memory_gets_an_error) {
  Settings settings = quiet_settings();
  settings.lua_memory_limit = 4 << 20;
  RunningServer server(settings);
  WireClient client = server.connect();
  EXPECT_THAT(client.call({"EVAL", "return 1", "0", std::string(8u << 20, 'x')}),
              HasSubstr("not enough memory"));
  EXPECT_EQ(client.call({"EVAL", "return #ARGV[1]", "0", "abc"}), ":3\r\n");
}

// The memory is full to the last byte when the result is read.
TEST(HostileScript, that_leaves_no_memory_still_gets_an_answer) {
  Settings settings = quiet_settings();
  settings.lua_memory_limit = 4 << 20;
  for (const char* end : {"return t", "error(t)", "return {err = 'x'}", "error('x')", "return 1"}) {
    RunningServer server(settings);
    WireClient client = server.connect();
    const std::string fill =
        "local t = {} local size = 2^20 while size >= 1 do "
        "if not pcall(function() t[#t + 1] = string.rep('x', size) .. #t end) then size = size / 2 end end ";
    EXPECT_THAT(client.call({"EVAL", fill + end, "0"}),
                ::testing::AnyOf(StartsWith("-"), StartsWith("*"), StartsWith(":")))
        << end;
    EXPECT_EQ(client.call({"PING"}), "+PONG\r\n") << end;
  }
}

TEST(HostileLibrary, that_fills_the_memory_leaves_room_for_scripts) {
  Settings settings = quiet_settings();
  settings.lua_memory_limit = 4 << 20;
  RunningServer server(settings);
  WireClient client = server.connect();
  for (const char* end : {"while true do t[#t + 1] = ('x'):rep(1e5) .. #t end",
                          "while #t < 30 do t[#t + 1] = ('x'):rep(1e5) .. #t end"}) {
    const std::string text = std::string(
                                 "#!lua name=lib\nlocal t = {}\nredis.register_function('f', function() "
                                 "return #t end)\n") +
                             end;
    EXPECT_THAT(client.call({"FUNCTION", "LOAD", text}), HasSubstr("not enough memory")) << end;
    EXPECT_EQ(client.call({"EVAL", "return 1", "0"}), ":1\r\n") << end;
  }
}

TEST(HostileScript, too_large_to_compile_leaves_room_for_others) {
  Settings settings = quiet_settings();
  settings.lua_memory_limit = 4 << 20;
  RunningServer server(settings);
  WireClient client = server.connect();
  EXPECT_EQ(client.call({"EVAL", "return 1", "0"}), ":1\r\n");
  std::string large;
  while (large.size() < 2'000'000) large += "x=1 ";
  EXPECT_THAT(client.call({"SCRIPT", "LOAD", large}), HasSubstr("not enough memory"));
  EXPECT_EQ(client.call({"EVAL", "return 1", "0"}), ":1\r\n");
  EXPECT_EQ(client.call({"EVAL", "return 2", "0"}), ":2\r\n");
}

TEST(HostileLibrary, that_catches_its_timeout_is_refused) {
  RunningServer server;
  WireClient client = server.connect();
  EXPECT_THAT(client.call({"FUNCTION", "LOAD",
                           "#!lua name=lib\nlocal function f() while true do local x = redis.log end end\n"
                           "redis.register_function('f', f)\n"
                           "while true do f() end"}),
              HasSubstr("FUNCTION LOAD timeout"));
}

// Before busy-reply-threshold, too, the server hears what does not concern the data; the rest waits.
TEST(SlowScript, keeps_other_requests_waiting_but_not_those_for_the_server) {
  RunningServer server;  // which says BUSY after five seconds
  WireClient slow = server.connect();
  WireClient asks = server.connect();
  WireClient waits = server.connect();
  slow.send(encode({"EVAL", "while true do end", "0"}));
  while (asks.call({"SCRIPT", "KILL"}).starts_with("-NOTBUSY")) {
  }
  EXPECT_THAT(slow.reply(), HasSubstr("Script killed by user"));
  slow.send(encode({"EVAL", "redis.call('set', 'k', 'v') while redis.call('exists', 'k') == 1 do end", "0"}));
  while (!asks.call({"FUNCTION", "STATS"}).starts_with("*4\r\n$14\r\nrunning_script\r\n*6")) {
  }
  waits.send(encode({"GET", "k"}));
  EXPECT_EQ(asks.call({"PING"}), "+PONG\r\n");
  EXPECT_THAT(asks.call({"SCRIPT", "KILL"}), StartsWith("-UNKILLABLE"));
}

TEST(SlowScript, lets_requests_that_waited_for_it_go_on) {
  Settings settings = quiet_settings();
  settings.busy_reply_threshold_ms = 0;  // never
  RunningServer server(settings);
  WireClient slow = server.connect();
  WireClient asks = server.connect();
  WireClient waits = server.connect();
  slow.send(encode({"EVAL", "while true do end", "0"}));
  while (!asks.call({"FUNCTION", "STATS"}).starts_with("*4\r\n$14\r\nrunning_script\r\n*6")) {
  }
  waits.send(encode({"SET", "k", "v"}));
  waits.send(encode({"GET", "k"}));
  EXPECT_EQ(asks.call({"SCRIPT", "KILL"}), ok);
  EXPECT_THAT(slow.reply(), StartsWith("-ERR"));
  EXPECT_EQ(waits.reply(), ok);
  EXPECT_EQ(waits.reply(), "$1\r\nv\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
