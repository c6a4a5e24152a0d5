// Hostile scripts: what they cost themselves, and that no other client notices. oracle/scripting.txt has what
// scripts return.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv/scripts/script_cache.hpp"
#include "tests/kv/running_server.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* ok = "+OK\r\n";
constexpr const char* busy =
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";

Settings impatient() {
  Settings settings = quiet_settings();
  settings.busy_reply_threshold_ms = 1;
  return settings;
}

void wait_until_busy(WireClient& other) {
  while (!other.call({"PING"}).starts_with("-BUSY")) {
  }
}

TEST(Script, that_takes_too_long_leaves_others_an_answer_and_can_be_killed) {
  RunningServer server(impatient());
  WireClient slow = server.connect();
  WireClient other = server.connect();
  slow.send(encode({"EVAL", "while true do end", "0"}));
  wait_until_busy(other);
  EXPECT_EQ(other.call({"GET", "k"}), busy);
  EXPECT_EQ(other.call({"SCRIPT", "KILL"}), ok);
  EXPECT_THAT(slow.reply(), HasSubstr("Script killed by user with SCRIPT KILL"));
  EXPECT_EQ(other.call({"PING"}), "+PONG\r\n");
  EXPECT_EQ(slow.call({"PING"}), "+PONG\r\n");
}

TEST(Script, cannot_catch_being_killed) {
  for (const char* text : {"while true do pcall(function() while true do end end) end",
                           "local function f() while true do pcall(f) end end f()",
                           "while true do coroutine.wrap(function() while true do end end)() end",
                           "while true do xpcall(function() while true do end end, function() end) end"}) {
    RunningServer server(impatient());
    WireClient slow = server.connect();
    WireClient other = server.connect();
    slow.send(encode({"EVAL", text, "0"}));
    wait_until_busy(other);
    EXPECT_EQ(other.call({"SCRIPT", "KILL"}), ok) << text;
    EXPECT_THAT(slow.reply(), StartsWith("-")) << text;
    EXPECT_EQ(other.call({"PING"}), "+PONG\r\n") << text;
  }
}

TEST(Script, that_took_long_goes_on_and_answers) {
  RunningServer server(impatient());
  WireClient slow = server.connect();
  WireClient other = server.connect();
  slow.send(encode({"EVAL",
                    "local n = 0 while redis.call('exists', 'stop') == 0 do n = n + 1 "
                    "if n == 200000 then redis.call('set', 'stop', ARGV[1]) end end return KEYS[1]",
                    "1", "key", "arg"}));
  slow.send(encode({"GET", "stop"}));
  EXPECT_EQ(slow.reply(), "$3\r\nkey\r\n");
  EXPECT_EQ(slow.reply(), "$3\r\narg\r\n");
  EXPECT_EQ(other.call({"PING"}), "+PONG\r\n");
}

TEST(Script, is_shown_with_all_its_words_while_it_runs) {
  RunningServer server(impatient());
  WireClient slow = server.connect();
  WireClient other = server.connect();
  slow.call({"FUNCTION", "LOAD",
             "#!lua name=lib\nredis.register_function('Spin', function() while true do end end)"});
  slow.send(encode({"FCall", "spin", "1", "key", "arg"}));
  wait_until_busy(other);
  const std::string stats = other.call({"FUNCTION", "STATS"});
  EXPECT_THAT(stats,
              HasSubstr("$4\r\nname\r\n$4\r\nSpin\r\n$7\r\ncommand\r\n*5\r\n$5\r\nFCall\r\n$4\r\nspin\r\n"
                        "$1\r\n1\r\n$3\r\nkey\r\n$3\r\narg\r\n"));
  EXPECT_EQ(other.call({"FUNCTION", "KILL"}), ok);
  EXPECT_THAT(slow.reply(), StartsWith("-ERR"));
}

TEST(Script, is_killed_only_by_the_command_for_its_kind) {
  constexpr const char* busy_with_function =
      "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.\r\n";
  const struct {
    std::vector<std::string> begins, wrong, right;
    std::string said;
  } rows[] = {{{"EVAL", "while true do end", "0"}, {"FUNCTION", "KILL"}, {"SCRIPT", "KILL"}, busy},
              {{"FCALL", "spin", "0"}, {"SCRIPT", "KILL"}, {"FUNCTION", "KILL"}, busy_with_function}};
  for (const auto& row : rows) {
    RunningServer server(impatient());
    WireClient slow = server.connect();
    WireClient other = server.connect();
    slow.call({"FUNCTION", "LOAD",
               "#!lua name=lib\nredis.register_function('spin', function() while true do end end)"});
    slow.send(encode(row.begins));
    wait_until_busy(other);
    EXPECT_EQ(other.call({"PING"}), row.said);
    EXPECT_EQ(other.call(row.wrong), row.said);
    EXPECT_EQ(other.call(row.right), ok);
    EXPECT_THAT(slow.reply(), StartsWith("-ERR"));
  }
}

TEST(FunctionLibrary, sees_only_what_registers_functions_while_it_is_loaded) {
  const struct {
    const char *code, *missing;
  } rows[] = {{"math.random()", "math"},
              {"redis.call('ping')", "call"},
              {"redis.setresp(3)", "setresp"},
              {"redis.set_repl(0)", "set_repl"},
              {"redis.redis.call('ping')", "redis"},
              {"getmetatable(redis)", "getmetatable"}};
  RunningServer server(quiet_settings());
  WireClient client = server.connect();
  for (const auto& row : rows) {
    EXPECT_THAT(
        client.call({"FUNCTION", "LOAD", std::string("#!lua name=lib\nlocal x = ") + row.code}),
        HasSubstr(std::string("attempted to access nonexistent global variable '") + row.missing + "'"))
        << row.code;
  }
  EXPECT_EQ(client.call({"EVAL", "return math.abs(-3)", "0"}), ":3\r\n") << "scripts see all of it again";
}

TEST(FunctionLibrary, cannot_register_functions_or_change_what_it_kept_once_it_runs) {
  RunningServer server(quiet_settings());
  WireClient client = server.connect();
  client.call(
      {"FUNCTION", "LOAD",
       "#!lua name=lib\nlocal kept = redis\n"
       "kept.register_function('asks', function() return redis.register_function('x', tostring) end)\n"
       "kept.register_function('keeps', function() kept.register_function('x', tostring) end)\n"
       "kept.register_function('changes', function() kept.math = math end)\n"
       "kept.register_function('counts', function() return math.abs(-3) end)"});
  EXPECT_THAT(client.call({"FCALL", "asks", "0"}),
              HasSubstr("attempt to call field 'register_function' (a nil value)"));
  EXPECT_THAT(client.call({"FCALL", "keeps", "0"}), HasSubstr("can only be called on FUNCTION LOAD command"));
  EXPECT_THAT(client.call({"FCALL", "changes", "0"}), HasSubstr("Attempt to modify a readonly table"));
  EXPECT_EQ(client.call({"FCALL", "counts", "0"}), ":3\r\n");
}

TEST(FunctionLibrary, is_refused_with_the_reason) {
  const struct {
    std::vector<std::string> words;
    const char* said;
  } rows[] = {
      {{"FUNCTION", "LOAD",
        "#!lua name=lib\nredis.register_function{function_name='f', callback=function() end, "
        "flags={function() end}}"},
       "unknown flag given"},
      {{"FUNCTION", "FLUSH", "SYNC", "x"}, "unknown subcommand or wrong number of arguments for 'FLUSH'"},
      {{"FUNCTION", "FLUSH", "x"}, "only supports SYNC|ASYNC option"},
      {{"FUNCTION", "LIST", "LIBRARYNAME", "a", "LIBRARYNAME", "b"}, "Unknown argument LIBRARYNAME"},
  };
  RunningServer server(quiet_settings());
  WireClient client = server.connect();
  for (const auto& row : rows) EXPECT_THAT(client.call(row.words), HasSubstr(row.said)) << row.words.back();
}

TEST(Script, that_wrote_is_not_killed) {
  RunningServer server(impatient());
  WireClient slow = server.connect();
  WireClient other = server.connect();
  slow.send(encode({"EVAL", "redis.call('set', 'k', 1) while true do end", "0"}));
  wait_until_busy(other);
  EXPECT_THAT(other.call({"SCRIPT", "KILL"}), StartsWith("-UNKILLABLE"));
}

TEST(Script, whose_client_left_is_killed) {
  RunningServer server(impatient());
  WireClient other = server.connect();
  {
    WireClient slow = server.connect();
    slow.send(encode({"EVAL", "while true do end", "0"}));
    wait_until_busy(other);
  }
  while (other.call({"PING"}) == busy) {
  }
}

TEST(Script, in_a_transaction_is_suspended_with_it) {
  RunningServer server(impatient());
  WireClient slow = server.connect();
  WireClient other = server.connect();
  slow.call({"MULTI"});
  slow.call({"SET", "a", "1"});
  slow.call({"EVAL", "while true do end", "0"});
  slow.call({"GET", "a"});
  slow.send(encode({"EXEC"}));
  wait_until_busy(other);
  EXPECT_EQ(other.call({"SCRIPT", "KILL"}), ok);
  EXPECT_THAT(slow.reply(), ::testing::AllOf(StartsWith("*3\r\n+OK\r\n-ERR"), HasSubstr("$1\r\n1\r\n")));
}

TEST(Script, keeps_what_it_pushed_from_those_who_wait_until_it_is_over) {
  RunningServer server(impatient());
  WireClient slow = server.connect();
  WireClient waiting = server.connect();
  WireClient other = server.connect();
  waiting.send(encode({"BLPOP", "l", "0"}));
  while (other.call({"CLIENT", "LIST"}).find("flags=b") == std::string::npos) {
  }
  slow.send(encode({"EVAL",
                    "redis.call('rpush', 'l', 'x') local n = 0 for i = 1, 20000000 do n = n + i end "
                    "return redis.call('llen', 'l')",
                    "0"}));
  EXPECT_EQ(slow.reply(), ":1\r\n");
  EXPECT_EQ(waiting.reply(), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
}

TEST(Script, sees_no_key_expire_while_it_runs) {
  RunningServer server(impatient());
  WireClient slow = server.connect();
  slow.call({"SET", "k", "v", "PX", "30"});
  EXPECT_EQ(slow.call({"EVAL",
                       "local there = redis.call('exists', 'k') for i = 1, 30000000 do end "
                       "return there == redis.call('exists', 'k')",
                       "0"}),
            ":1\r\n");
}

TEST(Script, that_wants_too_much_memory_fails_and_the_next_one_runs) {
  for (const char* text : {"local s = 'x' while true do s = s .. s end", "return string.rep('x', 1e9)",
                           "local t = {} while true do t[#t + 1] = {} end",
                           "local function f() return f() + 1 end return f()"}) {
    Settings settings = quiet_settings();
    settings.lua_memory_limit = 16 << 20;
    RunningServer server(settings);
    WireClient a = server.connect();
    EXPECT_THAT(a.call({"EVAL", text, "0"}), StartsWith("-ERR")) << text;
    EXPECT_EQ(a.call({"EVAL", "return 1", "0"}), ":1\r\n") << text;
  }
}

TEST(Script, cannot_leave_anything_for_the_next_one) {
  RunningServer server;
  WireClient a = server.connect();
  for (const char* text :
       {"string.rep = nil", "_G.string = nil", "rawset(string, 'rep', 1)", "KEYS.x = 1",
        "table.insert(string, 1)", "getmetatable('').__index = nil", "collectgarbage('stop')",
        "setmetatable(string, {})", "_G._G = nil", "redis.call = nil",
        "for k in pairs(_G) do rawset(_G, k, nil) end", "local _, t = pairs(string) t.rep = nil",
        "string.gmatch('a', 'a'); coroutine.create(function() string = nil end)"}) {
    a.call({"EVAL", text, "0"});
    EXPECT_EQ(
        a.call({"EVAL",
                "return {('x'):rep(2), string.rep('y', 2), KEYS.x or 'none', redis.call('echo', 'e')}", "0"}),
        "*4\r\n$2\r\nxx\r\n$2\r\nyy\r\n$4\r\nnone\r\n$1\r\ne\r\n")
        << text;
  }
}

TEST(Script, leaves_the_garbage_collector_to_the_next_one_as_it_was) {
  for (const char* text : {"collectgarbage('stop')", "collectgarbage('setpause', 100000)",
                           "collectgarbage('setstepmul', 1) collectgarbage('setpause', 1000)"}) {
    RunningServer server;
    WireClient a = server.connect();
    a.call({"EVAL", text, "0"});
    for (int i = 0; i < 100; ++i) a.call({"EVAL", "local t = {} for i = 1, 1000 do t[i] = {} end", "0"});
    const std::string memory = a.call({"INFO", "memory"});
    constexpr std::string_view field = "used_memory_lua:";
    const std::size_t at = memory.find(field);
    ASSERT_NE(at, std::string::npos);
    EXPECT_LT(std::stoul(memory.substr(at + field.size())), 1'000'000u) << text;
  }
}

TEST(Script, loads_no_bytecode) {
  RunningServer server;
  WireClient a = server.connect();
  for (const char* text :
       {"return loadstring(string.dump(function() return 1 end)) == nil",
        "local code, at = string.dump(function() return 1 end), 0 "
        "return load(function() at = at + 1 if at <= #code then return code:sub(at, at) end end) == nil"}) {
    EXPECT_EQ(a.call({"EVAL", text, "0"}), ":1\r\n") << text;
  }
  EXPECT_THAT(a.call({"EVAL", "\x1bLua", "0"}), StartsWith("-ERR")) << "the script itself";
}

TEST(Script, cannot_break_the_libraries_with_odd_arguments) {
  RunningServer server;
  WireClient a = server.connect();
  struct Row {
    const char* text;
    const char* reply;
  };
  for (const auto& [text, reply] : {
           Row{"return bit.tohex(255, -2147483648)", "$8\r\n000000FF\r\n"},
           Row{"return bit.tohex(255, 2147483647)", "$8\r\n000000ff\r\n"},
           Row{"return bit.tohex(255, 2)", "$2\r\nff\r\n"},
           Row{"local s = ('x'):rep(1e7) local t = {} for i = 1, 300 do t[i] = s end return cjson.encode(t)",
               "-ERR"},
           Row{"local t = {} t[1], t[2] = t, t return cjson.encode(t)", "-ERR"},
           Row{"return #{unpack({}, 0, 2147483647)}", "-ERR"},
           Row{"return load(function() collectgarbage() return nil end, ('n'):rep(100)) ~= nil", ":1\r\n"},
           Row{"return cmsgpack.unpack('\\221\\221\\221')", "-ERR"},
           Row{"return cmsgpack.unpack('\\221' .. ('\\221'):rep(1e5))", "-ERR"},
       }) {
    EXPECT_THAT(a.call({"EVAL", text, "0"}), StartsWith(reply)) << text;
  }
  EXPECT_EQ(a.call({"PING"}), "+PONG\r\n");
}

TEST(Script, that_ends_with_the_server_is_ended) {
  RunningServer server(impatient());
  WireClient slow = server.connect();
  WireClient other = server.connect();
  slow.send(encode(
      {"EVAL", "redis.call('set', 'k', 1) while true do pcall(function() while true do end end) end", "0"}));
  wait_until_busy(other);
}

TEST(Script, gets_a_reply_of_many_pieces_whole) {
  RunningServer server;
  WireClient a = server.connect();
  const std::string large(100'000, 'v');
  a.call({"SET", "large", large});
  EXPECT_EQ(a.call({"EVAL",
                    "local keys = {} for i = 1, 300 do keys[i] = 'large' end "
                    "local values = redis.call('mget', unpack(keys)) return {#values, #values[300]}",
                    "0"}),
            "*2\r\n:300\r\n:100000\r\n");
}

TEST(ScriptCache, keeps_loaded_scripts_and_the_last_500_of_eval) {
  RunningServer server;
  WireClient a = server.connect();
  const std::string loaded = a.call({"SCRIPT", "LOAD", "return 'loaded'"}).substr(5, 40);
  for (int i = 0; i < 1200; ++i) a.call({"EVAL", "return " + std::to_string(i), "0"});
  EXPECT_EQ(a.call({"SCRIPT", "EXISTS", loaded, sha1_hex("return 0"), sha1_hex("return 1199")}),
            "*3\r\n:1\r\n:0\r\n:1\r\n");
  EXPECT_THAT(a.call({"INFO", "memory"}), HasSubstr("number_of_cached_scripts:501\r\n"));
}

}  // namespace
}  // namespace weir::kv::testing
