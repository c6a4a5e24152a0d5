// Fields of hashes that expire, as clients see them: replies as Redis 7.4 gives them.
#include <gmock/gmock.h>

#include <fstream>

#include "kv/persistence/loading.hpp"
#include "kv/resp/words.hpp"
#include "tests/kv/one_line.hpp"
#include "tests/kv/recorded_effects.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

using ::testing::HasSubstr;

struct Row {
  std::vector<std::string> before;
  std::string command;
  std::string reply;
};

// A server on which nothing expires by itself, and a client. A reply's lines are separated by blanks.
class FieldExpiry : public ::testing::Test {
 protected:
  FieldExpiry() {
    server.run([](Server& s) { s.expires_in_time = false; });
  }
  std::string say(std::string_view line) { return one_line(client.call(*split_words(line))); }
  void make(const std::vector<std::string>& lines) {
    say("FLUSHALL");
    for (const std::string& line : lines) ASSERT_NE(say(line)[0], '-') << line;
  }

  void expect_replies(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      SCOPED_TRACE(row.command);
      make(row.before);
      EXPECT_EQ(say(row.command), row.reply);
    }
  }

  RunningServer server;
  WireClient client = server.connect();
};

TEST_F(FieldExpiry, replies_are_redis_7_4s) {
  const std::string two = "HSET h a 1 b 2";
  const std::string far = "HPEXPIREAT h 4000000000000 FIELDS 1 a";
  const std::string invalid = "-ERR invalid expire time in 'hexpire' command";
  const std::string mismatch = "-ERR The `numfields` parameter must match the number of arguments";
  const std::string misplaced = "-ERR Mandatory argument FIELDS is missing or not at the right position";
  const std::string greater = "-ERR Parameter `numFields` should be greater than 0";
  const std::string positive = "-ERR Number of fields must be a positive integer";
  const std::string wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
  const std::vector<Row> rows{
      {{}, "HEXPIRE h 100 FIELDS 2 a b", "*2 :-2 :-2"},
      {{two}, "HEXPIRE h 100 FIELDS 2 a c", "*2 :1 :-2"},
      {{two}, "HEXPIREAT h 1 FIELDS 3 a b c", "*3 :2 :2 :-2"},
      {{two}, "HPEXPIRE h 0 FIELDS 1 a", "*1 :2"},
      {{two, far}, "HPEXPIREAT h 4000000000001 NX FIELDS 2 a b", "*2 :0 :1"},
      {{two, far}, "HPEXPIREAT h 4000000000001 XX FIELDS 2 a b", "*2 :1 :0"},
      {{two, far}, "HPEXPIREAT h 4000000000001 GT FIELDS 2 a b", "*2 :1 :0"},
      {{two, far}, "HPEXPIREAT h 4000000000000 GT FIELDS 1 a", "*1 :0"},
      {{two, far}, "HPEXPIREAT h 3999999999999 LT FIELDS 2 a b", "*2 :1 :1"},
      {{two, far}, "HPEXPIREAT h 4000000000000 LT FIELDS 1 a", "*1 :0"},
      {{two}, "HEXPIREAT h 1 XX FIELDS 1 a", "*1 :0"},
      {{two}, "HEXPIRE h 100 FIELDS 2 a a", "*2 :1 :1"},
      {{two}, "HEXPIRE h -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0"},
      {{two}, "HEXPIRE h x FIELDS 1 a", "-ERR value is not an integer or out of range"},
      {{two}, "HEXPIRE h 70368744177 FIELDS 1 a", invalid},
      {{two}, "HPEXPIREAT h 70368744177663 FIELDS 1 a", "*1 :1"},
      {{two}, "HPEXPIREAT h 70368744177664 FIELDS 1 a", "-ERR invalid expire time in 'hpexpireat' command"},
      {{two}, "HEXPIRE h 9223372036854775807 FIELDS 1 a", invalid},
      {{two}, "HEXPIRE h 1 FIELDS 0 a", greater},
      {{two}, "HEXPIRE h 1 FIELDS x a", greater},
      {{two}, "HEXPIRE h 1 FIELDS 2 a", mismatch},
      {{two}, "HEXPIRE h 1 FIELDS 1 a b", mismatch},
      {{two}, "HEXPIRE h 1 NX FIELDS 1", mismatch},
      {{two}, "HEXPIRE h 1 NX XX FIELDS 1 a", misplaced},
      {{two}, "HEXPIRE h 1 1 a b", misplaced},
      {{two}, "HEXPIRE h 1 FIELDS 1", "-ERR wrong number of arguments for 'hexpire' command"},
      {{"SET h x"}, "HEXPIRE h x FIELDS 1 a", wrong_type},
      {{}, "HTTL h FIELDS 2 a b", "*2 :-2 :-2"},
      {{two, "HEXPIRE h 100 FIELDS 1 a"}, "HTTL h FIELDS 3 a b c", "*3 :100 :-1 :-2"},
      {{two, far}, "HEXPIRETIME h FIELDS 1 a", "*1 :4000000000"},
      {{two, "HPEXPIREAT h 4000000000001 FIELDS 1 a"}, "HEXPIRETIME h FIELDS 1 a", "*1 :4000000001"},
      {{two, far}, "HPEXPIRETIME h FIELDS 2 a b", "*2 :4000000000000 :-1"},
      {{two}, "HTTL h FIELDS 0 a", positive},
      {{two}, "HTTL h FIELDS 2 a", mismatch},
      {{two}, "HTTL h 1 a b", misplaced},
      {{"SET h x"}, "HPTTL h FIELDS 1 a", wrong_type},
      {{}, "HPERSIST h FIELDS 2 a b", "*2 :-2 :-2"},
      {{two, far}, "HPERSIST h FIELDS 3 a b c", "*3 :1 :-1 :-2"},
      {{two}, "HPERSIST h FIELDS -1 a", positive},
      {{two}, "HPERSIST h FIELDS 1 a b", mismatch},
      {{two}, "HPERSIST h FIELDS 1", "-ERR wrong number of arguments for 'hpersist' command"},
  };
  expect_replies(rows);
}

TEST_F(FieldExpiry, replies_of_combined_commands_are_redis_8s) {
  const std::string two = "HSET h a 1 b 2";
  const std::string far = "HPEXPIREAT h 4000000000000 FIELDS 1 a";
  const std::string one_time = "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
  const std::string arity = "-ERR wrong number of arguments for 'hsetex' command";
  const std::string mismatch = "-ERR The `numfields` parameter must match the number of arguments";
  expect_replies({
      {{two}, "HGETDEL h FIELDS 3 a c a", "*3 1 $-1 $-1"},
      {{}, "HGETDEL h FIELDS 1 a", "*1 $-1"},
      {{two}, "HGETDEL h FIELDS 2 a", mismatch},
      {{two}, "HGETEX h FIELDS 2 a c", "*2 1 $-1"},
      {{two, "HGETEX h EX 100 FIELDS 1 a"}, "HTTL h FIELDS 2 a b", "*2 :100 :-1"},
      {{two, far, "HGETEX h PERSIST FIELDS 1 a"}, "HTTL h FIELDS 1 a", "*1 :-1"},
      {{two, "HGETEX h PXAT 1 FIELDS 2 a b"}, "EXISTS h", ":0"},
      {{two}, "HGETEX h EX -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0"},
      {{two},
       "HGETEX h EX 100 PERSIST FIELDS 1 a",
       "-ERR Mandatory argument FIELDS is missing or not at the right position"},
      {{two}, "HGETEX h EX 100 FIELDS", "-ERR Number of fields must be a positive integer"},
      {{}, "HSETEX h FIELDS 2 a 1 b 2", ":1"},
      {{}, "HSETEX h FXX FIELDS 1 a 1", ":0"},
      {{two}, "HSETEX h FXX FIELDS 2 a 1 c 1", ":0"},
      {{two}, "HSETEX h FNX FIELDS 2 c 1 a 1", ":0"},
      {{two, "HSETEX h EX 100 FXX FIELDS 2 a 3 b 4"}, "HTTL h FIELDS 2 a b", "*2 :100 :100"},
      {{two, far, "HSETEX h KEEPTTL FIELDS 2 a 3 b 4"},
       "HPEXPIRETIME h FIELDS 2 a b",
       "*2 :4000000000000 :-1"},
      {{two, far, "HSETEX h FIELDS 1 a 3"}, "HTTL h FIELDS 1 a", "*1 :-1"},
      {{"HSETEX h PXAT 1 FIELDS 1 a 1"}, "EXISTS h", ":0"},
      {{two}, "HSETEX h EX 1 KEEPTTL FIELDS 1 a 1", one_time},
      {{two}, "HSETEX h EX 1 PX 1 FIELDS 1 a 1", one_time},
      {{two}, "HSETEX h FNX FXX FIELDS 1 a 1", "-ERR Only one of FXX or FNX arguments can be specified"},
      {{two}, "HSETEX h YX FIELDS 1 a 1", "-ERR unknown argument: YX"},
      {{two}, "HSETEX h FNX FNX FIELDS 1 a", "-ERR Only one of FXX or FNX arguments can be specified"},
      {{two}, "HSETEX h FIELDS x a 1", "-ERR invalid number of fields"},
      {{two}, "HSETEX h FIELDS 2 a 1", arity},
      {{two}, "HSETEX h FIELDS 1 a 1 b", arity},
      {{"SET h x"},
       "HSETEX h FIELDS 1 a 1",
       "-WRONGTYPE Operation against a key holding the wrong kind of value"},
  });
}

TEST_F(FieldExpiry, combined_commands_do_not_see_what_has_expired) {
  const std::vector<Row> rows{
      {{}, "HGETDEL h FIELDS 2 b a", "*2 2 $-1"},
      {{}, "HGETEX h EX 100 FIELDS 2 a b", "*2 $-1 2"},
      {{}, "HSETEX h FNX FIELDS 1 a 9", ":1"},
      {{}, "HSETEX h FXX FIELDS 1 a 9", ":0"},
      {{"HSETEX h KEEPTTL FIELDS 1 a 9"}, "HTTL h FIELDS 1 a", "*1 :-1"},
      {{"HGETDEL h FIELDS 2 b a"}, "EXISTS h", ":0"},
      {{"HGETDEL h FIELDS 1 b", "HSETEX h KEEPTTL FIELDS 1 a 9"}, "HGETALL h", "*2 a 9"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.command);
    make({"HSET h a 1 b 2", "HPEXPIRE h 10 FIELDS 1 a"});
    server.advance_ms(20);
    for (const std::string& line : row.before) say(line);
    EXPECT_EQ(say(row.command), row.reply);
  }
}

// "a" has expired, "b" has a time that is yet to come, "c" stays.
TEST_F(FieldExpiry, expired_fields_are_not_seen_by_any_command) {
  const std::vector<Row> rows{
      {{}, "HGET h a", "$-1"},
      {{}, "HMGET h a c", "*2 $-1 3"},
      {{}, "HEXISTS h a", ":0"},
      {{}, "HSTRLEN h a", ":0"},
      {{}, "HGETALL h", "*4 b 2 c 3"},
      {{}, "HKEYS h", "*2 b c"},
      {{}, "HVALS h", "*2 2 3"},
      {{}, "HSCAN h 0", "*2 0 *4 b 2 c 3"},
      {{}, "HINCRBY h a 5", ":5"},
      {{}, "HINCRBYFLOAT h a 0.5", "0.5"},
      {{}, "HSETNX h a 9", ":1"},
      {{}, "HTTL h FIELDS 1 a", "*1 :-2"},
      {{}, "HPERSIST h FIELDS 1 a", "*1 :-2"},
      {{}, "HEXPIRE h 100 FIELDS 1 a", "*1 :-2"},
      {{}, "EVAL \"return redis.call('HGET', 'h', 'a')\" 0", "$-1"},
      {{"RPUSH l h", "SET h_ 1"}, "SORT l BY nosort GET *->a GET *->c", "*2 $-1 3"},
      // As in Redis, where looking at every field would take too long.
      {{}, "HLEN h", ":3"},
      {{}, "HDEL h a", ":1"},
      {{}, "HSET h a 9", ":0"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.command);
    make({"HSET h a 1 b 2 c 3", "HPEXPIRE h 10 FIELDS 1 a", "HEXPIRE h 1000 FIELDS 1 b"});
    for (const std::string& line : row.before) say(line);
    server.advance_ms(20);
    EXPECT_EQ(say(row.command), row.reply);
    EXPECT_EQ(say("HTTL h FIELDS 2 b c").substr(0, 6), "*2 :10");
  }
}

TEST_F(FieldExpiry, reading_an_expired_field_removes_it_and_the_last_one_its_key) {
  make({"HSET h a 1 b 2 c 3", "HPEXPIRE h 10 FIELDS 3 a b c"});
  server.advance_ms(20);
  EXPECT_EQ(say("EXISTS h"), ":1");
  EXPECT_EQ(say("HGETALL h"), "*0");
  EXPECT_EQ(say("HLEN h"), ":3");
  EXPECT_EQ(say("HEXISTS h a"), ":0");
  EXPECT_EQ(say("HLEN h"), ":2");
  EXPECT_EQ(say("HMGET h b c a"), "*3 $-1 $-1 $-1");
  EXPECT_EQ(say("EXISTS h"), ":0");
  EXPECT_EQ(say("HINCRBY h a 1"), ":1");
  EXPECT_EQ(say("HTTL h FIELDS 1 a"), "*1 :-1") << "a new hash without times";
}

TEST_F(FieldExpiry, random_fields_are_drawn_from_those_that_live) {
  for (const int fields : {10, 3000}) {
    SCOPED_TRACE(fields);
    make({"HSET h lives 1"});
    for (int i = 0; i < fields; ++i) {
      const std::string field = "f" + std::to_string(i);
      say("HSET h " + field + " 1");
      say("HPEXPIRE h 10 FIELDS 1 " + field);
    }
    server.advance_ms(200);
    EXPECT_EQ(say("HRANDFIELD h"), "lives");
    EXPECT_EQ(say("HRANDFIELD h 5"), "*1 lives");
    EXPECT_EQ(say("HRANDFIELD h -2 WITHVALUES"), "*4 lives 1 lives 1");
    say("HPEXPIRE h 0 FIELDS 1 lives");
    EXPECT_EQ(say("HRANDFIELD h"), "$-1");
    EXPECT_EQ(say("HRANDFIELD h -2"), "*0");
  }
}

TEST_F(FieldExpiry, changes_of_a_field_keep_its_time_and_overwriting_drops_it) {
  make({"HSET h a 1 b 1.5 c 3", "HPEXPIREAT h 4000000000000 FIELDS 3 a b c"});
  say("HINCRBY h a 1");
  say("HINCRBYFLOAT h b 1");
  say("HSET h c 4");
  EXPECT_EQ(say("HPEXPIRETIME h FIELDS 3 a b c"), "*3 :4000000000000 :4000000000000 :-1");
  EXPECT_EQ(say("HGETALL h"), "*6 a 2 b 2.5 c 4");
}

TEST_F(FieldExpiry, times_go_where_the_hash_goes) {
  const std::string payload = [&] {
    make({"HSET h a 1 b 2", "HPEXPIREAT h 4000000000000 FIELDS 1 a"});
    const std::string reply = client.call({"DUMP", "h"});
    return reply.substr(reply.find("\r\n") + 2, reply.size() - reply.find("\r\n") - 4);
  }();
  const auto expect_at = [&](const std::string& key, const std::string& db) {
    EXPECT_EQ(say("SELECT " + db), "+OK");
    EXPECT_EQ(say("HPEXPIRETIME " + key + " FIELDS 2 a b"), "*2 :4000000000000 :-1") << key;
    EXPECT_EQ(say("SELECT 0"), "+OK");
  };
  say("RENAME h i");
  expect_at("i", "0");
  say("COPY i j DB 1");
  expect_at("j", "1");
  say("MOVE i 2");
  expect_at("i", "2");
  say("SWAPDB 2 3");
  expect_at("i", "3");
  EXPECT_EQ(one_line(client.call({"RESTORE", "k", "0", payload})), "+OK");
  expect_at("k", "0");
  EXPECT_THAT(say("INFO keyspace"), HasSubstr("db0:keys=1,expires=0,avg_ttl=0,subexpiry=1"));
  EXPECT_THAT(say("INFO keyspace"), HasSubstr("db3:keys=1,expires=0,avg_ttl=0,subexpiry=1"));
  server.advance_ms(4'000'000'000'000);
  for (const int db : {0, 1, 3}) {
    server.run([db](Server& s) {
      std::size_t most = 10;
      s.refresh_time();
      s.databases[static_cast<std::size_t>(db)]->expire_due_fields(s.now_ms, most);
    });
  }
  EXPECT_THAT(say("INFO stats"), HasSubstr("expired_subkeys:3"));
  EXPECT_THAT(say("INFO keyspace"), HasSubstr("db3:keys=1,expires=0,avg_ttl=0,subexpiry=0"));
}

TEST_F(FieldExpiry, is_shown_by_encoding_digest_and_memory) {
  make({"HSET h a 1"});
  const std::string plain = server.run([](Server& s) { return digest_of(s.databases).hex(); });
  const std::string bytes = say("MEMORY USAGE h");
  EXPECT_EQ(say("OBJECT ENCODING h"), "listpack");
  say("HEXPIRE h 100 FIELDS 1 a");
  EXPECT_EQ(say("OBJECT ENCODING h"), "listpackex");
  EXPECT_NE(server.run([](Server& s) { return digest_of(s.databases).hex(); }), plain);
  EXPECT_GT(std::stol(say("MEMORY USAGE h").substr(1)), std::stol(bytes.substr(1)));
  say("HPERSIST h FIELDS 1 a");
  EXPECT_EQ(say("OBJECT ENCODING h"), "listpack");
  EXPECT_EQ(server.run([](Server& s) { return digest_of(s.databases).hex(); }), plain);
  EXPECT_EQ(say("MEMORY USAGE h"), bytes);
  say("CONFIG SET hash-max-listpack-entries 0");
  say("HSET h b 1");
  say("HEXPIRE h 100 FIELDS 1 a");
  EXPECT_EQ(say("OBJECT ENCODING h"), "hashtable");
}

TEST_F(FieldExpiry, count_of_hashes_follows_every_way_to_lose_a_time) {
  for (const char* loses : {"HDEL h a", "HSET h a 2", "HPERSIST h FIELDS 1 a", "HEXPIRE h 0 FIELDS 1 a",
                            "DEL h", "SET h text", "SETRANGE other 0 x", "FLUSHDB", "RESTORE h 0 x"}) {
    SCOPED_TRACE(loses);
    make({"SET other 1", "HSET h a 1 b 1", "HEXPIRE h 100 FIELDS 1 a"});
    const bool keeps =
        std::string_view(loses).starts_with("SETRANGE") || std::string_view(loses).starts_with("RES");
    say(loses);
    EXPECT_EQ(server.run([](Server& s) { return s.databases[0]->hashes_with_times(); }), keeps ? 1u : 0u);
  }
}

TEST_F(FieldExpiry, is_reported_as_key_events) {
  WireClient listener = server.connect();
  say("CONFIG SET notify-keyspace-events Khg");
  listener.call({"PSUBSCRIBE", "__keyspace*"});
  const auto expect_events = [&](const std::vector<std::string>& events) {
    for (const std::string& event : events)
      EXPECT_EQ(one_line(listener.reply()), "*4 pmessage __keyspace* __keyspace@0__:h " + event);
  };
  say("HSET h a 1 b 2 c 3");
  say("HEXPIRE h 100 FIELDS 2 a b");
  say("HPERSIST h FIELDS 1 b");
  say("HPEXPIREAT h 1 FIELDS 1 b");
  expect_events({"hset", "hexpire", "hpersist", "hdel"});
  server.advance_ms(200'000);
  say("HGET h a");
  say("HPEXPIREAT h 1 FIELDS 1 c");
  expect_events({"hexpired", "hdel", "del"});
  say("HSET h a 1 b 1");
  say("HPEXPIRE h 10 FIELDS 2 a b");
  server.run([](Server& s) { s.expires_in_time = true; });
  pass_ms(server, 20);
  expect_events({"hset", "hexpire", "hexpired", "del"});
  EXPECT_TRUE(listener.quiet());
}

TEST_F(FieldExpiry, breaks_the_transaction_of_who_watches_the_key) {
  make({"HSET h a 1 b 2", "HPEXPIRE h 10 FIELDS 1 a"});
  WireClient other = server.connect();
  say("WATCH h");
  server.advance_ms(20);
  other.call({"HGET", "h", "a"});
  say("MULTI");
  say("PING");
  EXPECT_EQ(say("EXEC"), "*-1");
}

TEST_F(FieldExpiry, of_a_huge_hash_lets_others_go_on) {
  server.run([](Server& s) {
    Hash hash;
    hash.set("stays", std::string_view("1"), {512, 64});
    for (int i = 0; i < 100'000; ++i) {
      const std::string field = "f" + std::to_string(i);
      hash.set(field, std::string_view("1"), {512, 64});
      hash.expire_at(field, s.now_ms + 10);
    }
    s.databases[0]->insert("h", Value(std::move(hash)));
  });
  server.advance_ms(20);
  // A turn removes a few hundred fields, and clients have theirs between two such turns.
  struct Turn {
    std::size_t removed, left;
  };
  server.run([](Server& s) { s.expires_in_time = true; });
  for (int turns = 0;; ++turns) {
    ASSERT_LT(turns, 300);
    const Turn turn = server.run([](Server& s) {
      const auto stored = [&] { return s.databases[0]->records().find("h")->value.hash().size(); };
      const std::size_t before = stored();
      s.tick();
      return Turn{before - stored(), stored()};
    });
    ASSERT_LE(turn.removed, 500u);
    ASSERT_EQ(say("HGETALL h"), "*2 stays 1");
    if (turn.left == 1) break;
  }
  EXPECT_EQ(say("HLEN h"), ":1");
}

Settings settings_in(const ScratchFolder& folder, bool with_log) {
  Settings settings = quiet_settings();
  settings.dir = folder.path();
  settings.appendonly = with_log;
  return settings;
}

std::string first_bytes_of(const std::string& path) {
  std::string bytes(9, '\0');
  std::ifstream(path).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

TEST(FieldExpiryKept, by_a_snapshot_whose_version_says_so) {
  const ScratchFolder folder;
  {
    RunningServer server(settings_in(folder, false));
    WireClient client = server.connect();
    client.call({"HSET", "h", "a", "1", "b", "2", "c", "3"});
    ASSERT_EQ(client.call({"SAVE"}), "+OK\r\n");
    EXPECT_EQ(first_bytes_of(folder.file("dump.rdb")), "REDIS0010") << "what Redis 7.0 reads";
    client.call({"HPEXPIREAT", "h", "4000000000000", "FIELDS", "1", "a"});
    client.call({"HPEXPIRE", "h", "10000", "FIELDS", "1", "b"});
    ASSERT_EQ(client.call({"SAVE"}), "+OK\r\n");
    EXPECT_EQ(first_bytes_of(folder.file("dump.rdb")), "REDIS0012");
  }
  RunningServer server(settings_in(folder, false));
  server.advance_ms(20'000);
  ASSERT_TRUE(server.run([](Server& s) { return load_snapshot(s, [] { return true; }).has_value(); }));
  WireClient client = server.connect();
  EXPECT_EQ(client.call({"HPEXPIRETIME", "h", "FIELDS", "3", "a", "b", "c"}),
            "*3\r\n:4000000000000\r\n:-2\r\n:-1\r\n");
  pass_ms(server, 200);
  EXPECT_EQ(client.call({"HLEN", "h"}), ":2\r\n");
}

TEST(FieldExpiryKept, by_a_log) {
  const ScratchFolder folder;
  {
    RunningServer server(settings_in(folder, true));
    WireClient client = server.connect();
    client.call({"HSET", "h", "a", "1", "b", "2", "c", "3", "d", "4"});
    client.call({"HPEXPIREAT", "h", "4000000000000", "FIELDS", "1", "a"});
    client.call({"HPEXPIRE", "h", "10000", "FIELDS", "1", "b"});
    client.call({"HPEXPIRE", "h", "10", "FIELDS", "1", "d"});
    pass_ms(server, 20);
    EXPECT_EQ(client.call({"HSETNX", "h", "d", "5"}), ":1\r\n");
  }
  RunningServer server(settings_in(folder, true));
  WireClient client = server.connect();
  server.advance_ms(20'000);
  EXPECT_EQ(client.call({"HPEXPIRETIME", "h", "FIELDS", "4", "a", "b", "c", "d"}),
            "*4\r\n:4000000000000\r\n:-2\r\n:-1\r\n:-1\r\n");
  EXPECT_EQ(client.call({"HGET", "h", "d"}), "$1\r\n5\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
