// What Redis after 7.0 and Valkey have and Debian's redis-server lacks: their replies, written down.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kv/written_replies.hpp"

namespace weir::kv::testing {
namespace {

class LaterVersions : public WrittenReplies {};

TEST_F(LaterVersions, zrank_returns_the_score) {
  const std::string two = "ZADD z 1 a 2.5 b";
  expect_replies({
      {{two}, "ZRANK z b WITHSCORE", "*2 :1 2.5"},
      {{two}, "ZREVRANK z a withscore", "*2 :1 1"},
      {{two}, "ZRANK z c WITHSCORE", "*-1"},
      {{}, "ZREVRANK z c WITHSCORE", "*-1"},
      {{two}, "ZRANK z c", "$-1"},
      {{two}, "ZRANK z a WITHSCORES", syntax_error},
      {{two}, "ZRANK z a WITHSCORE x", "-ERR wrong number of arguments for 'zrank' command"},
      {{"SET z x"}, "ZRANK z a WITHSCORE", wrong_type},
  });
  client.call({"HELLO", "3"});
  expect_replies({{{two}, "ZRANK z b WITHSCORE", "*2 :1 ,2.5"}, {{}, "ZRANK z b WITHSCORE", "_"}});
}

TEST_F(LaterVersions, scripts_call_the_server_by_that_name) {
  expect_replies({
      {{"SET k v"}, "EVAL \"return server.call('get', KEYS[1])\" 1 k", "v"},
      {{}, "EVAL \"return server.pcall('get')['err'] ~= nil\" 0", ":1"},
      {{}, "EVAL \"return server.error_reply('MY error')\" 0", "-MY error"},
      {{}, "EVAL \"return server.SERVER_NAME\" 0", "weir"},
      {{"FUNCTION LOAD REPLACE \"#!lua name=l\nserver.register_function('f', function() return "
        "server.call('ping') end)\""},
       "FCALL f 0",
       "+PONG"},
      {{"FUNCTION LOAD REPLACE \"#!lua name=l\nserver.log(server.LOG_DEBUG, 'x') "
        "server.register_function('f', "
        "function() return 1 end)\""},
       "FCALL f 0",
       ":1"},
  });
  EXPECT_EQ(say("EVAL \"server.call = nil\" 0").substr(0, 4), "-ERR");
}

TEST_F(LaterVersions, set_compares_with_the_value_before) {
  expect_replies({
      {{"SET k v"}, "SET k w IFEQ v", "+OK"},
      {{"SET k v"}, "SET k w IFEQ x", "$-1"},
      {{}, "SET k w IFEQ v", "$-1"},
      {{"SET k v"}, "SET k w IFEQ v GET", "v"},
      {{"SET k v"}, "SET k w GET IFEQ x", "v"},
      {{}, "SET k w IFEQ v GET", "$-1"},
      {{"SET k 7"}, "SET k 8 IFEQ 7", "+OK"},
      {{"SET k v EX 100", "SET k w IFEQ v"}, "TTL k", ":-1"},
      {{"SET k v EX 100", "SET k w IFEQ v KEEPTTL"}, "TTL k", ":100"},
      {{"SET k v", "SET k w IFEQ v EX 100"}, "TTL k", ":100"},
      {{"SET k v", "SET k w IFEQ v"}, "GET k", "w"},
      {{"RPUSH k v"}, "SET k w IFEQ v", wrong_type},
      {{}, "SET k w IFEQ", syntax_error},
      {{}, "SET k w NX IFEQ v", syntax_error},
      {{}, "SET k w IFEQ v XX", syntax_error},
  });
}

TEST_F(LaterVersions, delifeq_deletes_an_equal_string) {
  expect_replies({
      {{"SET k v"}, "DELIFEQ k v", ":1"},
      {{"SET k v", "DELIFEQ k v"}, "EXISTS k", ":0"},
      {{"SET k v"}, "DELIFEQ k x", ":0"},
      {{"SET k v"}, "DELIFEQ k ''", ":0"},
      {{}, "DELIFEQ k v", ":0"},
      {{"RPUSH k v"}, "DELIFEQ k v", wrong_type},
  });
}

TEST_F(LaterVersions, msetex_sets_several_strings_with_one_time) {
  const std::string invalid = "-ERR invalid expire time in 'msetex' command";
  expect_replies({
      {{}, "MSETEX 2 a 1 b 2", ":1"},
      {{"MSETEX 2 a 1 b 2 EX 100"}, "MGET a b", "*2 1 2"},
      {{"MSETEX 2 a 1 b 2 EX 100"}, "TTL b", ":100"},
      {{"SET a 0 EX 100", "MSETEX 1 a 1"}, "TTL a", ":-1"},
      {{"SET a 0 EX 100", "MSETEX 2 a 1 b 2 KEEPTTL"}, "TTL a", ":100"},
      {{"RPUSH a x", "MSETEX 1 a 1"}, "GET a", "1"},
      {{"SET a 0"}, "MSETEX 2 b 1 a 2 NX", ":0"},
      {{"SET a 0", "MSETEX 2 b 1 a 2 NX"}, "EXISTS b", ":0"},
      {{"SET a 0"}, "MSETEX 2 a 1 b 2 XX EX 100", ":0"},
      {{"SET a 0"}, "MSETEX 1 a 1 EX 100 XX", ":1"},
      {{}, "MSETEX 2 a 1 a 2 NX", ":1"},
      {{}, "MSETEX 1 NX EX NX", ":1"},
      {{}, "MSETEX 0 a 1", "-ERR invalid numkeys value"},
      {{}, "MSETEX x a 1", "-ERR invalid numkeys value"},
      {{}, "MSETEX 2 a 1", "-ERR wrong number of key-value pairs"},
      {{}, "MSETEX 9223372036854775807 a 1", "-ERR wrong number of key-value pairs"},
      {{}, "MSETEX 1 a 1 b 2", syntax_error},
      {{}, "MSETEX 1 a 1 NX XX", syntax_error},
      {{}, "MSETEX 1 a 1 GET", syntax_error},
      {{}, "MSETEX 1 a 1 EX 100 KEEPTTL", syntax_error},
      {{}, "MSETEX 1 a 1 EX 0", invalid},
      {{}, "MSETEX 1 a 1 EX", syntax_error},
      {{}, "COMMAND GETKEYS MSETEX 2 a 1 b 2 EX 100", "*2 a b"},
  });
}

TEST_F(LaterVersions, hsetex_asks_whether_there_is_a_hash) {
  const std::string one = "HSET h a 1";
  expect_replies({
      {{one}, "HSETEX h NX FIELDS 1 b 2", ":0"},
      {{one}, "HSETEX h XX FIELDS 1 b 2", ":1"},
      {{}, "HSETEX h NX FIELDS 1 b 2", ":1"},
      {{}, "HSETEX h XX FIELDS 1 b 2", ":0"},
      {{"HSETEX h XX FIELDS 1 b 2"}, "EXISTS h", ":0"},
      {{one}, "HSETEX h XX FNX FIELDS 1 a 2", ":0"},
      {{one}, "HSETEX h FXX EX 100 XX FIELDS 1 a 2", ":1"},
      {{}, "HSETEX h NX XX FIELDS 1 a 2", "-ERR Only one of XX or NX arguments can be specified"},
  });
}

TEST_F(LaterVersions, hscan_leaves_values_out) {
  expect_replies({
      {{"HSET h a 1 b 2"}, "HSCAN h 0 NOVALUES", "*2 0 *2 a b"},
      {{"HSET h a 1 b 2"}, "HSCAN h 0 NOVALUES MATCH b COUNT 5", "*2 0 *1 b"},
      {{"HSET h a 1"}, "HSCAN h 0 COUNT 5 NOVALUES", "*2 0 *1 a"},
      {{}, "HSCAN h 0 NOVALUES", "*2 0 *0"},
      {{"SADD s a"}, "SSCAN s 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN"},
      {{}, "SCAN 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN"},
  });
}

TEST_F(LaterVersions, dump_has_the_form_that_rdb_dialect_names) {
  say("HSET h f 1 g 2");
  say("HPEXPIREAT h 60000000000000 FIELDS 1 f");
  for (const auto& [dialect, type, version] : {std::tuple("redis", 24, 10), std::tuple("valkey", 22, 80)}) {
    EXPECT_EQ(client.call({"CONFIG", "SET", "rdb-dialect", dialect}), "+OK\r\n");
    std::string payload = client.call({"DUMP", "h"});
    payload = payload.substr(payload.find('\n') + 1);
    EXPECT_EQ(payload[0], type);
    EXPECT_EQ(payload[payload.size() - 12], version);
    EXPECT_EQ(client.call({"RESTORE", "again", "0", payload.substr(0, payload.size() - 2), "REPLACE"}),
              "+OK\r\n");
    EXPECT_EQ(say("HPEXPIRETIME again FIELDS 2 f g"), "*2 :60000000000000 :-1");
  }
}

TEST_F(LaterVersions, xread_returns_the_last_entry) {
  const std::string first = "XADD s 1-0 a 1";
  const std::string second = "XADD s 2-0 b 2";
  const std::string last = "*1 *2 s *1 *2 2-0 *2 b 2";
  expect_replies({
      {{first, second}, "XREAD STREAMS s +", last},
      {{first, second}, "XREAD COUNT 10 STREAMS s +", last},
      {{first, second, "XADD s 3-0 c 3", "XDEL s 3-0"}, "XREAD STREAMS s +", last},
      {{second}, "XREAD BLOCK 0 STREAMS s nothing + +", last},
      {{"XADD s 0-1 b 2"}, "XREAD STREAMS s +", "*1 *2 s *1 *2 0-1 *2 b 2"},
      {{}, "XREAD STREAMS s +", "*-1"},
      {{first, "XDEL s 1-0"}, "XREAD STREAMS s +", "*-1"},
  });
  say("XGROUP CREATE s g 0 MKSTREAM");
  EXPECT_EQ(say("XREADGROUP GROUP g c STREAMS s +").substr(0, 24), "-ERR The + ID is meaning");
}

TEST_F(LaterVersions, geosearch_finds_what_lies_in_a_polygon) {
  const std::string places = "GEOADD g 1 1 a 3 1 b 2 3 c 9 9 far 2 1.2 notch";
  // A square whose lower side is pushed in to a notch above 2, 1.5.
  const std::string notched = "5 0 0 2 1.5 4 0 4 4 0 4";
  expect_replies({
      {{places}, "GEOSEARCH g BYPOLYGON 4 0 0 4 0 4 4 0 4 ASC", "*4 notch c b a"},
      {{places}, "GEOSEARCH g BYPOLYGON " + notched + " ASC", "*3 c b a"},
      {{places}, "GEOSEARCH g BYPOLYGON 3 0 0 4 0 2 2 COUNT 1", "*1 notch"},
      {{places}, "GEOSEARCH g BYPOLYGON 3 8 8 10 8 9 10 WITHDIST", "*1 *2 far 37075.4558"},
      {{places}, "GEOSEARCHSTORE d g BYPOLYGON 3 8 8 10 8 9 10", ":1"},
      {{}, "GEOSEARCH g BYPOLYGON 3 8 8 10 8 9 10", "*0"},
      {{}, "GEOSEARCH g BYPOLYGON 2 8 8 10 8", "-ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"},
      {{}, "GEOSEARCH g BYPOLYGON 4 8 8 10 8 9 10", syntax_error},
      {{}, "GEOSEARCH g BYPOLYGON 3 8 8 10 8 9 10 FROMLONLAT 1 1", syntax_error},
      {{}, "GEOSEARCH g FROMLONLAT 1 1 BYPOLYGON 3 8 8 10 8 9 10", syntax_error},
      {{}, "GEOSEARCH g BYPOLYGON 3 8 8 10 8 9 10 BYBOX 1 1 m", syntax_error},
      {{},
       "GEOSEARCH g BYPOLYGON 3 8 8 10 8 9 90",
       "-ERR invalid longitude,latitude pair 9.000000,90.000000"},
      {{}, "GEOSEARCH g BYPOLYGON x 8 8 10 8", "-ERR value is not an integer or out of range"},
  });
}

// Whatever cells the map is searched by: each member in the polygon is found, and no other.
TEST_F(LaterVersions, geosearch_misses_nothing_in_large_polygons) {
  say("FLUSHALL");
  for (int longitude = -179; longitude < 180; longitude += 2) {
    std::string line = "GEOADD g";
    for (int latitude = -85; latitude <= 85; latitude += 2) {
      const std::string place = std::to_string(longitude) + ' ' + std::to_string(latitude);
      line += ' ' + place + " '" + place + '\'';
    }
    say(line);
  }
  struct {
    int west, south, east, north;
  } rows[] = {
      {-178, -84, 178, 84}, {170, -10, 178, 10}, {-178, 60, -150, 84}, {-2, -2, 2, 2}, {0, 0, 100, 2}};
  for (const auto& [west, south, east, north] : rows) {
    const auto corner = [](int longitude, int latitude) {
      return ' ' + std::to_string(longitude) + ' ' + std::to_string(latitude);
    };
    const std::string reply = say("GEOSEARCH g BYPOLYGON 4" + corner(west, south) + corner(east, south) +
                                  corner(east, north) + corner(west, north));
    const int expected = (east - west) / 2 * ((north - south) / 2);
    EXPECT_EQ(reply.substr(0, reply.find(' ')), '*' + std::to_string(expected)) << west << ' ' << south;
  }
}

std::string count_lines(const std::string& text) {
  return std::to_string(std::ranges::count(text, '\n') - 2);  // of a bulk string with lines
}

TEST_F(LaterVersions, client_list_chooses_by_many_qualities) {
  WireClient other = server.connect();
  WireClient third = server.connect();
  const auto id_of = [](WireClient& one) { return one_line(one.call({"CLIENT", "ID"})).substr(1); };
  const std::string mine = id_of(client);
  const std::string second = id_of(other);
  other.call({"CLIENT", "SETNAME", "worker"});
  other.call({"CLIENT", "SETINFO", "LIB-NAME", "lib"});
  other.call({"CLIENT", "SETINFO", "LIB-VER", "7"});
  other.call({"CLIENT", "CAPA", "redirect", "something-later"});
  other.call({"SELECT", "3"});
  third.call({"SUBSCRIBE", "channel"});
  struct {
    std::string filter;
    const char* clients;
  } rows[] = {
      {"ID " + mine + ' ' + second, "2"},
      {"ID " + mine + ' ' + second + " SKIPME yes", "1"},
      {"ID " + mine + " NAME worker", "0"},
      {"NOT-ID " + mine + ' ' + second, "1"},
      {"NAME worker", "1"},
      {"NOT-NAME worker", "2"},
      {"LIB-NAME lib LIB-VER 7", "1"},
      {"NOT-LIB-VER 7", "2"},
      {"CAPA r", "1"},
      {"NOT-CAPA r", "2"},
      {"DB 3", "1"},
      {"NOT-DB 3", "2"},
      {"TYPE pubsub", "1"},
      {"TYPE primary", "0"},
      {"NOT-TYPE normal", "1"},
      {"FLAGS P", "1"},
      {"FLAGS UP", "1"},
      {"NOT-FLAGS P", "2"},
      {"USER default", "3"},
      {"NOT-USER default", "0"},
      {"MAXAGE 1000", "0"},
      {"IDLE 1000", "0"},
      {"IP 10.0.0.1", "0"},
      {"NOT-IP 10.0.0.1", "3"},
      {"ADDR 10.0.0.1:5", "0"},
      {"SKIPME yes", "2"},
      {"SKIPME no", "3"},
  };
  for (const auto& [filter, clients] : rows)
    EXPECT_EQ(count_lines(client.call(*split_words("CLIENT LIST " + filter))), clients) << filter;
  EXPECT_EQ(say("CLIENT KILL NAME worker TYPE pubsub"), ":0");
  EXPECT_EQ(say("CLIENT KILL ID 99999999 " + second + " SKIPME yes"), ":1");
  EXPECT_EQ(say("CLIENT KILL NOT-ID " + mine + " MAXAGE 1000"), ":0");
  EXPECT_EQ(say("CLIENT KILL NOT-ID " + mine), ":1");
}

TEST_F(LaterVersions, client_filters_that_are_wrong_are_refused) {
  expect_replies({
      {{}, "CLIENT LIST ID 1 0", "-ERR client-id should be greater than 0"},
      {{}, "CLIENT LIST ID 1 x", syntax_error},
      {{}, "CLIENT LIST NAME", syntax_error},
      {{}, "CLIENT LIST DB x", "-ERR DB is not an integer or out of range"},
      {{}, "CLIENT LIST DB 16", "-ERR DB index should be between 0 and 15"},
      {{}, "CLIENT LIST MAXAGE 0", "-ERR maxage should be greater than 0"},
      {{}, "CLIENT KILL MAXAGE x", "-ERR maxage is not an integer or out of range"},
      {{}, "CLIENT LIST IDLE -1", "-ERR idle should be greater than 0"},
      {{}, "CLIENT LIST NOT-MAXAGE 1", syntax_error},
      {{}, "CLIENT LIST NOT-USER nobody", "-ERR No such user 'nobody'"},
      {{}, "CLIENT CAPA", "-ERR wrong number of arguments for 'client|capa' command"},
  });
}

TEST_F(LaterVersions, commandlog_keeps_what_is_large) {
  say("CONFIG SET commandlog-request-larger-than 100 commandlog-reply-larger-than 100");
  say("COMMANDLOG RESET large-request");
  const std::string text(100, 'x');
  say("SET k " + text);
  say("GET k");
  EXPECT_EQ(say("COMMANDLOG LEN large-request"), ":1");
  EXPECT_EQ(say("COMMANDLOG LEN LARGE-REPLY"), ":1");
  const std::string request = say("COMMANDLOG GET -1 large-request");
  EXPECT_EQ(request.substr(0, 7), "*1 *6 :");
  EXPECT_NE(request.find(" :128 *3 SET k " + text), std::string::npos) << request;
  EXPECT_NE(say("COMMANDLOG GET 10 large-reply").find(" :108 *2 GET k"), std::string::npos);
  say("CONFIG SET commandlog-large-reply-max-len 1");
  say("GET k");
  EXPECT_EQ(say("COMMANDLOG LEN large-reply"), ":1");
  EXPECT_EQ(say("COMMANDLOG RESET large-reply"), "+OK");
  EXPECT_EQ(say("COMMANDLOG LEN large-reply"), ":0");
  say("CONFIG SET commandlog-reply-larger-than -1");
  say("GET k");
  EXPECT_EQ(say("COMMANDLOG LEN large-reply"), ":0");
}

TEST_F(LaterVersions, commandlog_has_the_slow_commands_too) {
  say("CONFIG SET commandlog-execution-slower-than 0");
  say("SLOWLOG RESET");
  say("PING");
  const std::string logged = say("SLOWLOG LEN");
  EXPECT_NE(logged, ":0");
  EXPECT_NE(say("COMMANDLOG GET -1 slow").find("*1 PING"), std::string::npos);
  EXPECT_EQ(say("CONFIG GET slowlog-log-slower-than"), "*2 slowlog-log-slower-than 0");
  const std::string types = "-ERR type should be one of the following: slow, large-request, large-reply";
  EXPECT_EQ(say("COMMANDLOG GET 1 fast"), types);
  EXPECT_EQ(say("COMMANDLOG GET -2 slow"), "-ERR count should be greater than or equal to -1");
}

TEST_F(LaterVersions, script_show_returns_the_text) {
  expect_replies({
      {{"SCRIPT LOAD 'return 1'"}, "SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "return 1"},
      {{"SCRIPT LOAD 'return 1'"}, "SCRIPT SHOW E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "return 1"},
      {{},
       "SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8dc",
       "-NOSCRIPT No matching script. Please use EVAL."},
      {{}, "SCRIPT SHOW x", "-NOSCRIPT No matching script. Please use EVAL."},
  });
}

// What runs answers at once; what waits is answered after the pause.
TEST_F(LaterVersions, scripts_without_writes_run_while_writes_wait) {
  const std::string reads = "EVAL \"#!lua flags=no-writes\nreturn 'ran'\" 0";
  say("FUNCTION LOAD \"#!lua name=l\nserver.register_function{function_name='f', callback=function() return "
      "'ran' "
      "end, flags={'no-writes'}} server.register_function('w', function() return 'ran' end)\"");
  const std::string sha = say("SCRIPT LOAD \"#!lua flags=no-writes\nreturn 'ran'\"");
  const std::string plain_sha = say("SCRIPT LOAD \"return 'ran'\"");
  say("CLIENT PAUSE 1000000 WRITE");
  for (const std::string& line : {reads, "EVALSHA " + sha + " 0", std::string("FCALL f 0")})
    EXPECT_EQ(say(line), "ran") << line;
  say("MULTI");
  say(reads);
  EXPECT_EQ(say("EXEC"), "*1 ran");
  for (const std::string& line :
       {std::string("EVAL \"return 'ran'\" 0"), "EVALSHA " + plain_sha + " 0", std::string("FCALL w 0"),
        std::string("FCALL nothing 0"), std::string("EVAL \"#!lua\nreturn 'ran'\" 0")}) {
    WireClient waiting = server.connect();
    waiting.send(encode(*split_words(line)));
    while (say("CLIENT LIST FLAGS b").empty() && waiting.quiet()) {
    }
    EXPECT_TRUE(waiting.quiet()) << line;
  }
}

// Where entries after the group's place were deleted, as Redis 7.4 and Valkey 8.1 count since they were
// repaired.
TEST_F(LaterVersions, xinfo_does_not_count_what_is_gone) {
  const std::vector<std::string> three{"XADD s 1-0 a 1", "XADD s 2-0 a 1", "XADD s 3-0 a 1",
                                       "XGROUP CREATE s g 0"};
  const std::string read_one = "XREADGROUP GROUP g c COUNT 1 NOACK STREAMS s >";
  struct {
    std::vector<std::string> lines;
    std::string read, lag;
  } rows[] = {
      {{}, "$-1", ":3"},
      {{read_one}, ":1", ":2"},
      {{read_one, "XDEL s 2-0"}, ":1", "$-1"},
      {{read_one, "XDEL s 2-0", "XDEL s 1-0"}, ":1", ":1"},
      {{read_one, "XDEL s 2-0", "XDEL s 1-0", read_one}, ":3", ":0"},
      {{read_one, "XTRIM s MAXLEN 1"}, ":1", ":1"},
      {{"XTRIM s MAXLEN 1"}, "$-1", ":1"},
      {{read_one, "XTRIM s MAXLEN 0"}, ":1", ":0"},
  };
  for (const auto& [lines, read, lag] : rows) {
    say("FLUSHALL");
    for (const std::string& line : three) say(line);
    for (const std::string& line : lines) say(line);
    const std::string reply = say("XINFO GROUPS s");
    EXPECT_NE(reply.find(" entries-read " + read + " lag " + lag), std::string::npos)
        << (lines.empty() ? "" : lines.back()) << '\n'
        << reply;
  }
}

TEST_F(LaterVersions, scripts_call_what_waits_and_do_not_wait) {
  const auto called = [](const std::string& words) { return "EVAL \"return server.call(" + words + ")\" 0"; };
  expect_replies({
      {{}, called("'blpop','l',0"), "$-1"},
      {{"RPUSH l a"}, called("'brpop','l',0"), "*2 l a"},
      {{}, called("'blmove','l','m','left','right',0"), "$-1"},
      {{}, called("'bzpopmin','z',0"), "$-1"},
      {{}, called("'wait','1','0'"), ":0"},
      {{}, called("'waitaof','0','1','0'"), "*2 :0 :0"},
      {{"XADD s 1-1 a 1"}, called("'xread','block',0,'streams','s','$'"), "$-1"},
      {{"XADD s 1-1 a 1"}, called("'xread','block',0,'streams','s','0'"), "*1 *2 s *1 *2 1-1 *2 a 1"},
  });
  EXPECT_EQ(say(called("'subscribe','c'")).substr(0, 37), "-ERR This command is not allowed from");
}

TEST_F(LaterVersions, scan_refuses_types_that_there_are_not) {
  expect_replies({
      {{"SET k v"}, "SCAN 0 TYPE STRING", "*2 0 *1 k"},
      {{"SET k v"}, "SCAN 0 TYPE foo", "-ERR unknown type name 'foo'"},
  });
}

std::string numbered_words(std::string command, const std::string& prefix, int count) {
  for (int i = 0; i < count; ++i) command += ' ' + prefix + std::to_string(i);
  return command;
}

TEST_F(LaterVersions, small_sets_and_lists_are_listpacks) {
  const std::string long_text(65, 'x');
  const std::string page(5000, 'x');
  const auto fill = [](const char* command, int count) { return numbered_words(command, "m", count); };
  const auto shorten = [](int count) { return "LTRIM k 0 " + std::to_string(count - 1); };
  const std::string integers = numbered_words("SADD k", "1", 130);
  struct EncodingRow {
    std::vector<std::string> make;
    std::string encoding;
  } rows[] = {
      {{"SADD k a"}, "listpack"},
      {{"SADD k 1 2"}, "intset"},
      {{"SADD k 1 2 a"}, "listpack"},
      {{fill("SADD k", 128)}, "listpack"},
      {{fill("SADD k", 129)}, "hashtable"},
      {{"SADD k a " + long_text}, "hashtable"},
      {{integers}, "intset"},
      {{integers, "SADD k a"}, "hashtable"},
      {{"CONFIG SET set-max-intset-entries 0", "SADD k 1"}, "listpack"},
      {{"CONFIG SET set-max-listpack-entries 2", "SADD k a b c"}, "hashtable"},
      {{"CONFIG SET set-max-listpack-value 1", "SADD k a bb"}, "hashtable"},
      {{"RPUSH k a"}, "listpack"},
      {{"RPUSH k " + page}, "listpack"},
      {{"RPUSH k " + page + ' ' + page}, "quicklist"},
      {{"RPUSH k " + page + page}, "quicklist"},
      {{"RPUSH k " + page + ' ' + page, "LPOP k"}, "quicklist"},
      {{"RPUSH k a " + page + ' ' + page, "LTRIM k 0 0"}, "listpack"},
      {{"CONFIG SET list-max-ziplist-size 4", fill("RPUSH k", 4)}, "listpack"},
      {{"CONFIG SET list-max-listpack-size 4", fill("RPUSH k", 5)}, "quicklist"},
      {{"CONFIG SET list-max-listpack-size 4", fill("RPUSH k", 5), shorten(3)}, "quicklist"},
      {{"CONFIG SET list-max-listpack-size 4", fill("RPUSH k", 5), shorten(2)}, "listpack"},
      {{"CONFIG SET list-max-listpack-size -5", "RPUSH k " + page + ' ' + page}, "listpack"},
  };
  for (const EncodingRow& row : rows) {
    SCOPED_TRACE(row.make.back().substr(0, 40));
    say("FLUSHALL");
    say("CONFIG SET set-max-intset-entries 512 set-max-listpack-entries 128 set-max-listpack-value 64 "
        "list-max-listpack-size -2");
    for (const std::string& line : row.make) ASSERT_NE(say(line)[0], '-') << line;
    EXPECT_EQ(say("OBJECT ENCODING k"), row.encoding);
    const std::string payload = client.call({"DUMP", "k"});
    const std::size_t begin = payload.find("\r\n") + 2;
    ASSERT_EQ(client.call({"RESTORE", "copy", "0", payload.substr(begin, payload.size() - begin - 2)}),
              "+OK\r\n");
  }
}

TEST_F(LaterVersions, settings_go_by_old_and_new_names) {
  for (const char* name : {"hash-max-%-entries", "hash-max-%-value", "zset-max-%-entries", "zset-max-%-value",
                           "list-max-%-size"}) {
    const auto with = [name](const std::string& form) {
      std::string text = name;
      return text.replace(text.find('%'), 1, form);
    };
    EXPECT_EQ(say("CONFIG SET " + with("ziplist") + " 77"), "+OK");
    EXPECT_EQ(say("CONFIG GET " + with("listpack")), "*2 " + with("listpack") + " 77");
    EXPECT_EQ(say("CONFIG GET " + with("ziplist")), "*2 " + with("ziplist") + " 77");
  }
}

}  // namespace
}  // namespace weir::kv::testing
