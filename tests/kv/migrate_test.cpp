// MIGRATE to servers that answer as a test wants, and to another server of this kind.
#include <gtest/gtest.h>

#include "kv/text/glob.hpp"
#include "tests/kv/fake_node.hpp"
#include "tests/kv/recorded_effects.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

using Words = std::vector<std::string>;

constexpr const char* ok = "+OK\r\n";
constexpr const char* timed_out = "-IOERR error or timeout reading to target instance\r\n";

Settings on_a_port() {
  Settings settings = quiet_settings();
  settings.bind = "127.0.0.1";
  settings.port = any_port;
  return settings;
}

// A server whose keys move to `target`.
class Migrate : public ::testing::Test {
 protected:
  static Words migrate(std::uint16_t port, const Words& more) {
    Words words{"MIGRATE", "127.0.0.1", std::to_string(port)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Words to_target(const Words& more) { return migrate(target.port(), more); }
  std::string told() {
    std::string text;
    for (const auto& [db, request] : effects.take())
      text.append(text.empty() ? "" : "; ").append(words_of(request));
    return text;
  }
  bool blocks() {
    return source.run([](Server& s) { return s.blocking.size(); }) != 0;
  }
  void await_end() {
    while (blocks()) std::this_thread::yield();
  }

  FakeNode target;
  RunningServer source;
  WireClient client = source.connect();
  WireClient other = source.connect();
  RecordedEffects effects{source};
};

TEST_F(Migrate, moves_a_key_to_another_server) {
  RunningServer there(on_a_port());
  const std::uint16_t port = there.run([](Server& s) { return s.port("tcp"); });
  client.call({"SET", "k", "v", "EX", "100"});
  told();
  EXPECT_EQ(client.call(migrate(port, {"k", "3", "5000"})), ok);
  EXPECT_EQ(told(), "DEL k");
  EXPECT_EQ(client.call({"EXISTS", "k"}), ":0\r\n");
  WireClient at_target = there.connect();
  at_target.call({"SELECT", "3"});
  EXPECT_EQ(at_target.call({"GET", "k"}), "$1\r\nv\r\n");
  EXPECT_EQ(at_target.call({"TTL", "k"}), ":100\r\n");
}

TEST_F(Migrate, moves_many_keys_of_every_size) {
  RunningServer there(on_a_port());
  const std::uint16_t port = there.run([](Server& s) { return s.port("tcp"); });
  Words words = migrate(port, {"", "0", "5000", "KEYS"});
  for (int i = 0; i < 3000; ++i) {
    words.push_back("key" + std::to_string(i));
    client.call(
        {"SET", words.back(), std::string(static_cast<std::size_t>(i % 500 == 0 ? 1'000'000 : i), 'x')});
  }
  words.insert(words.end(), {"none", "key7"});
  EXPECT_EQ(client.call(words), ok);
  EXPECT_EQ(client.call({"DBSIZE"}), ":0\r\n");
  EXPECT_EQ(there.connect().call({"DBSIZE"}), ":3000\r\n");
  EXPECT_EQ(there.connect().call({"STRLEN", "key2500"}), ":1000000\r\n");
  EXPECT_FALSE(source.run([](Server& s) { return s.keys_under_way.any(); }));
}

TEST_F(Migrate, answers_what_is_wrong_with_the_request) {
  client.call({"SET", "k", "v"});
  const std::vector<std::pair<Words, std::string>> calls = {
      {{"none", "0", "100"}, "+NOKEY\r\n"},
      {{"", "0", "100", "KEYS", "a", "b"}, "+NOKEY\r\n"},
      {{"", "0", "100", "KEYS"}, "+NOKEY\r\n"},
      {{"k", "0", "x"}, "-ERR value is not an integer or out of range\r\n"},
      {{"k", "x", "100"}, "-ERR value is not an integer or out of range\r\n"},
      {{"k", "0", "100", "NOPE"}, "-ERR syntax error\r\n"},
      {{"k", "0", "100", "AUTH"}, "-ERR syntax error\r\n"},
      {{"k", "0", "100", "AUTH2", "user"}, "-ERR syntax error\r\n"},
      {{"k", "0", "100", "KEYS", "k"},
       "-ERR When using MIGRATE KEYS option, the key argument must be set to the empty string\r\n"},
  };
  for (const auto& [words, reply] : calls) EXPECT_EQ(client.call(to_target(words)), reply);
  EXPECT_EQ(target.connections(), 0u);
}

TEST_F(Migrate, does_not_wait_in_a_transaction_or_script) {
  client.call({"SET", "k", "v"});
  client.call({"MULTI"});
  client.call(to_target({"k", "0", "100"}));
  EXPECT_EQ(client.call({"EXEC"}),
            "*1\r\n-ERR MIGRATE is not possible in a transaction or script: it waits\r\n");
  EXPECT_EQ(client.call({"EXISTS", "k"}), ":1\r\n");
}

TEST_F(Migrate, sends_the_options_that_it_was_given) {
  for (const char* key : {"a", "b"}) client.call({"SET", key, "v"});
  EXPECT_EQ(client.call(to_target({"a", "2", "5000", "COPY", "AUTH2", "user", "secret"})), ok);
  EXPECT_EQ(client.call({"EXISTS", "a"}), ":1\r\n");
  EXPECT_EQ(client.call(to_target({"", "2", "5000", "REPLACE", "AUTH", "secret", "KEYS", "a", "b"})), ok);
  auto requests = target.requests();
  ASSERT_EQ(requests.size(), 7u);
  EXPECT_EQ(requests[0], (Words{"AUTH", "user", "secret"}));
  EXPECT_EQ(requests[1], (Words{"SELECT", "2"}));
  EXPECT_EQ(requests[2].size(), 4u);
  EXPECT_EQ(requests[3], (Words{"AUTH", "secret"}));
  EXPECT_EQ(requests[6][0], "RESTORE");
  EXPECT_EQ(requests[6][1], "b");
  EXPECT_EQ(requests[6].back(), "REPLACE");
}

TEST_F(Migrate, keeps_the_connection_for_the_next_one_to_the_same_server) {
  for (const char* key : {"a", "b", "c"}) {
    client.call({"SET", key, "v"});
    EXPECT_EQ(client.call(to_target({key, "0", "5000"})), ok);
  }
  const std::vector<int> sources = target.sources();
  ASSERT_EQ(sources.size(), 4u) << "the database is selected once";
  EXPECT_EQ(std::ranges::count(sources, sources[0]), 4);
  EXPECT_EQ(source.run([](Server& s) { return s.migrations->kept_links(); }), 1u);
  pass_ms(source, 10'001);
  EXPECT_EQ(source.run([](Server& s) { return s.migrations->kept_links(); }), 0u);
}

TEST_F(Migrate, connects_again_when_the_kept_connection_has_ended) {
  client.call({"SET", "a", "v"});
  EXPECT_EQ(client.call(to_target({"a", "0", "5000"})), ok);
  client.call({"SET", "b", "v"});
  target.answers([first = true](const Words&) mutable -> std::optional<std::string> {
    if (std::exchange(first, false)) return std::nullopt;
    return ok;
  });
  EXPECT_EQ(client.call(to_target({"b", "0", "5000"})), ok);
  EXPECT_EQ(client.call({"EXISTS", "b"}), ":0\r\n");
}

TEST_F(Migrate, keeps_what_the_target_refuses) {
  for (const char* key : {"a", "b", "c"}) client.call({"SET", key, "v"});
  told();
  target.answers([](const Words& words) {
    return words[1] == "b" ? "-BUSYKEY Target key name already exists.\r\n" : ok;
  });
  EXPECT_EQ(client.call(to_target({"", "0", "5000", "KEYS", "a", "b", "c"})),
            "-ERR Target instance replied with error: BUSYKEY Target key name already exists.\r\n");
  EXPECT_EQ(told(), "DEL a; DEL c");
}

// Redis 8 and Valkey 9 refuse each other's form of it, and no request tells which one a server reads.
TEST_F(Migrate, sends_hashes_with_expiring_fields_in_the_form_of_the_target) {
  for (const char* key : {"a", "b"}) {
    client.call({"HSET", key, "f", "1", "g", "2"});
    client.call({"HPEXPIREAT", key, "60000000000000", "FIELDS", "1", "f"});
  }
  client.call({"SET", "c", "v"});
  told();
  const auto is_of_valkey = [](const std::string& payload) { return payload[0] == 22; };
  target.answers([&](const Words& words) {
    const bool hash = words[0] == "RESTORE" && words[1] != "c";
    return hash && !is_of_valkey(words[3]) ? "-ERR Bad data format\r\n" : ok;
  });
  EXPECT_EQ(client.call(to_target({"", "0", "5000", "KEYS", "a", "b", "c"})), ok);
  EXPECT_EQ(told(), "DEL c; DEL a; DEL b");
  const std::string payload = target.requests().back()[3];
  EXPECT_EQ(payload[payload.size() - 10], 80) << "the version of the format";
  target.answers([](const Words& words) { return words[0] == "RESTORE" ? "-ERR Bad data format\r\n" : ok; });
  client.call({"SET", "c", "v"});
  EXPECT_EQ(client.call(to_target({"c", "0", "5000"})),
            "-ERR Target instance replied with error: ERR Bad data format\r\n");
}

TEST_F(Migrate, sends_no_key_before_it_is_let_in_and_in_the_right_database) {
  client.call({"SET", "k", "v"});
  for (const char* refused : {"AUTH", "SELECT"}) {
    target.answers([refused](const Words& words) { return words[0] == refused ? "-ERR no\r\n" : ok; });
    EXPECT_EQ(client.call(to_target({"k", "9", "5000", "AUTH", "pw"})),
              "-ERR Target instance replied with error: ERR no\r\n");
  }
  for (const Words& request : target.requests()) EXPECT_NE(request[0], "RESTORE");
  EXPECT_EQ(client.call({"EXISTS", "k"}), ":1\r\n");
}

TEST_F(Migrate, tells_that_nobody_listens) {
  client.call({"SET", "k", "v"});
  target.die();
  const Words words = to_target({"k", "0", "5000"});
  std::string reply;
  do reply = client.call(words);
  while (reply.starts_with("-IOERR error or timeout reading"));
  EXPECT_EQ(reply, "-IOERR error or timeout connecting to the client\r\n");
  for (const char* port : {"0", "x", "65536"})
    EXPECT_EQ(client.call({"MIGRATE", "127.0.0.1", port, "k", "0", "100"}),
              "-IOERR error or timeout connecting to the client\r\n");
  EXPECT_EQ(client.call({"EXISTS", "k"}), ":1\r\n");
}

TEST_F(Migrate, gives_up_on_a_target_that_is_silent_and_holds_up_nobody_else) {
  client.call({"SET", "k", "v"});
  target.answers([](const Words&) { return ""; });
  client.send(encode(to_target({"k", "0", "1000000"})));
  target.await(1);
  EXPECT_EQ(other.call({"SET", "k", "w"}), ok);
  pass_ms(source, 500'000);
  EXPECT_TRUE(client.quiet());
  pass_ms(source, 500'001);
  EXPECT_EQ(client.reply(), timed_out);
  EXPECT_EQ(client.call({"GET", "k"}), "$1\r\nw\r\n");
  EXPECT_EQ(source.run([](Server& s) { return s.migrations->kept_links(); }), 0u);
}

TEST_F(Migrate, deletes_what_was_taken_before_the_connection_broke) {
  for (const char* key : {"a", "b"}) client.call({"SET", key, "v"});
  told();
  target.answers([](const Words& words) -> std::optional<std::string> {
    if (words[1] == "b") return std::nullopt;
    return ok;
  });
  EXPECT_EQ(client.call(to_target({"", "0", "5000", "KEYS", "a", "b"})), timed_out);
  EXPECT_EQ(told(), "DEL a");
}

// What happens to a key between its copy and the answer.
TEST_F(Migrate, sends_a_key_again_that_changed_meanwhile) {
  client.call({"SET", "k", "1"});
  target.answers([](const Words& words) { return words[0] == "SELECT" ? ok : ""; });
  client.send(encode(to_target({"k", "0", "5000"})));
  target.await(2);
  other.call({"INCR", "k"});
  target.say(ok);
  target.await(3);
  const Words again = target.requests()[2];
  EXPECT_EQ(again.back(), "REPLACE");
  EXPECT_EQ(other.call({"RESTORE", "seen", "0", again[3]}), ok);
  EXPECT_EQ(other.call({"GET", "seen"}), "$1\r\n2\r\n");
  EXPECT_EQ(other.call({"EXISTS", "k"}), ":1\r\n");
  target.say(ok);
  EXPECT_EQ(client.reply(), ok);
  EXPECT_EQ(client.call({"EXISTS", "k"}), ":0\r\n");
}

TEST_F(Migrate, deletes_a_key_there_that_was_deleted_meanwhile) {
  for (const Words& removal : {Words{"DEL", "k"}, Words{"FLUSHALL"}, Words{"SWAPDB", "0", "1"}}) {
    client.call({"SET", "k", "1"});
    const std::size_t before = target.requests().size();
    target.answers([](const Words& words) { return words[0] == "SELECT" ? ok : ""; });
    client.send(encode(to_target({"k", "0", "5000"})));
    while (target.requests().size() == before || target.requests().back()[0] != "RESTORE")
      std::this_thread::yield();
    const std::size_t count = target.requests().size();
    other.call(removal);
    target.say(ok);
    target.await(count + 1);
    EXPECT_EQ(target.requests().back(), (Words{"DEL", "k"}));
    target.say(":1\r\n");
    EXPECT_EQ(client.reply(), ok);
  }
}

TEST_F(Migrate, gives_up_on_a_key_that_changes_each_time) {
  client.call({"SET", "k", "1"});
  target.answers([this](const Words& words) {
    if (words[0] == "RESTORE") source.connect().call({"INCR", "k"});
    return ok;
  });
  EXPECT_TRUE(client.call(to_target({"k", "0", "5000"})).starts_with("-ERR a key changes too often"));
  EXPECT_EQ(client.call({"EXISTS", "k"}), ":1\r\n");
  EXPECT_FALSE(source.run([](Server& s) { return s.keys_under_way.any(); }));
}

TEST_F(Migrate, refuses_a_key_that_is_under_way_for_another_client) {
  client.call({"SET", "k", "v"});
  target.answers([](const Words&) { return ""; });
  client.send(encode(to_target({"k", "0", "5000"})));
  target.await(1);
  EXPECT_EQ(other.call(to_target({"k", "0", "5000"})),
            "-TRYAGAIN another MIGRATE moves one of these keys\r\n");
}

TEST_F(Migrate, of_a_client_that_leaves_ends) {
  client.call({"SET", "k", "v"});
  target.answers([](const Words& words) { return words[0] == "SELECT" ? ok : ""; });
  client.send(encode(to_target({"k", "0", "5000"})));
  target.await(2);
  client.close();
  await_clients(source, 1);
  EXPECT_FALSE(source.run([](Server& s) { return s.keys_under_way.any(); }));
  while (target.connections() != 0) std::this_thread::yield();
  EXPECT_EQ(other.call({"EXISTS", "k"}), ":1\r\n");
}

TEST_F(Migrate, can_be_unblocked) {
  client.call({"SET", "k", "v"});
  const std::string id = client.call({"CLIENT", "ID"});
  const std::string number = id.substr(1, id.size() - 3);
  target.answers([](const Words&) { return ""; });
  const std::vector<std::pair<std::string, std::string>> ways = {
      {"TIMEOUT", timed_out}, {"ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"}};
  for (const auto& [how, reply] : ways) {
    client.send(encode(to_target({"k", "0", "5000"})));
    while (!blocks()) std::this_thread::yield();
    EXPECT_EQ(other.call({"CLIENT", "UNBLOCK", number, how}), ":1\r\n");
    EXPECT_EQ(client.reply(), reply);
  }
  EXPECT_EQ(client.call({"EXISTS", "k"}), ":1\r\n");
}

TEST_F(Migrate, deletes_nothing_while_clients_are_paused) {
  client.call({"SET", "k", "v"});
  target.answers([](const Words& words) { return words[0] == "SELECT" ? ok : ""; });
  client.send(encode(to_target({"k", "0", "5000"})));
  target.await(2);
  other.call({"CLIENT", "PAUSE", "100000", "WRITE"});
  target.say(ok);
  pass_ms(source, 200);
  EXPECT_EQ(other.call({"EXISTS", "k"}), ":1\r\n");
  other.call({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(client.reply(), ok);
  EXPECT_EQ(other.call({"EXISTS", "k"}), ":0\r\n");
}

TEST_F(Migrate, ends_when_the_server_becomes_a_replica) {
  client.call({"SET", "k", "v"});
  target.answers([](const Words& words) { return words[0] == "SELECT" ? ok : ""; });
  client.send(encode(to_target({"k", "0", "5000"})));
  target.await(2);
  other.call({"REPLICAOF", "127.0.0.1", "1"});
  EXPECT_TRUE(client.reply().starts_with("-UNBLOCKED"));
  EXPECT_EQ(client.call({"EXISTS", "k"}), ":1\r\n");
}

TEST_F(Migrate, breaks_off_where_the_target_makes_no_sense) {
  client.call({"SET", "k", "v"});
  target.answers([](const Words&) { return std::string(100'000, 'x'); });
  EXPECT_EQ(client.call(to_target({"k", "0", "5000"})), timed_out);
  EXPECT_EQ(client.call({"EXISTS", "k"}), ":1\r\n");
}

TEST_F(Migrate, hides_passwords_in_the_slow_log) {
  client.call({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  client.call(to_target(
      {"none", "0", "100", "AUTH2", "user", "secret", "COPY", "AUTH", "word", "KEYS", "AUTH", "k"}));
  const std::string log = client.call({"SLOWLOG", "GET"});
  EXPECT_EQ(log.find("secret"), std::string::npos);
  EXPECT_EQ(log.find("word"), std::string::npos);
}

TEST_F(Migrate, needs_rights_on_every_key) {
  client.call({"ACL", "SETUSER", "mover", "on", "nopass", "+@all", "~a*"});
  for (const char* key : {"a", "b"}) client.call({"SET", key, "v"});
  other.call({"AUTH", "mover", ""});
  EXPECT_TRUE(other.call(to_target({"b", "0", "5000"})).starts_with("-NOPERM"));
  EXPECT_TRUE(
      other.call(to_target({"", "0", "5000", "AUTH", "KEYS", "KEYS", "a", "b"})).starts_with("-NOPERM"));
  EXPECT_EQ(other.call(to_target({"", "0", "5000", "AUTH", "KEYS", "KEYS", "a"})), ok);
}

}  // namespace
}  // namespace weir::kv::testing
