// The server with several clients: what one client does and another sees.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "kv/settings/options.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr const char* ok = "+OK\r\n";

TEST(Transactions, do_not_run_when_another_client_changed_a_watched_key) {
  RunningServer server;
  WireClient a = server.connect();
  WireClient b = server.connect();
  a.call({"SET", "k", "1"});
  EXPECT_EQ(a.call({"WATCH", "k"}), ok);
  b.call({"SET", "k", "2"});
  a.call({"MULTI"});
  a.call({"SET", "k", "3"});
  EXPECT_EQ(a.call({"EXEC"}), "*-1\r\n");
  EXPECT_EQ(a.call({"GET", "k"}), "$1\r\n2\r\n");
}

TEST(Transactions, do_not_run_when_a_watched_key_expired) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"SET", "k", "1", "PX", "100000"});
  a.call({"WATCH", "k"});
  server.advance_ms(200'000);
  a.call({"MULTI"});
  a.call({"PING"});
  EXPECT_EQ(a.call({"EXEC"}), "*-1\r\n");
}

TEST(Transactions, stop_where_swapped_databases_change_what_a_watched_key_seems_to_be) {
  enum class Key : std::uint8_t { missing, expired, live };
  struct Row {
    Key before, after;
    bool stops;
  };
  for (const Row row : {Row{Key::missing, Key::missing, false}, Row{Key::missing, Key::expired, false},
                        Row{Key::missing, Key::live, true}, Row{Key::expired, Key::missing, false},
                        Row{Key::expired, Key::expired, false}, Row{Key::expired, Key::live, true},
                        Row{Key::live, Key::missing, true}, Row{Key::live, Key::expired, true},
                        Row{Key::live, Key::live, true}}) {
    RunningServer server;
    WireClient a = server.connect();
    server.run([&row](Server& s) {
      for (const auto& [db, key] : {std::pair{0, row.before}, std::pair{1, row.after}}) {
        if (key == Key::missing) continue;
        Keyspace& in = *s.databases[static_cast<std::size_t>(db)];
        Record& record = in.insert("k");
        // As the timer has not come by yet.
        if (key == Key::expired) in.set_expiry(record, 1);
      }
    });
    a.call({"WATCH", "k"});
    server.connect().call({"SWAPDB", "0", "1"});
    a.call({"MULTI"});
    a.call({"PING"});
    EXPECT_EQ(a.call({"EXEC"}), row.stops ? "*-1\r\n" : "*1\r\n+PONG\r\n")
        << static_cast<int>(row.before) << ' ' << static_cast<int>(row.after);
  }
}

// How an expired key goes while a client watches it: found by the timer, or by another client's command.
class WatchedKey : public ::testing::TestWithParam<bool> {
 protected:
  void remove_expired(RunningServer& server) const {
    if (GetParam()) {
      server.run([](Server& s) {
        s.refresh_time();
        s.databases[0]->expire_due(s.now_ms, 10);
      });
    } else {
      EXPECT_EQ(server.connect().call({"GET", "k"}), "$-1\r\n");
    }
  }
};

TEST_P(WatchedKey, that_expired_and_was_removed_stops_the_transaction) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"SET", "k", "1", "PX", "100000"});
  a.call({"WATCH", "k"});
  server.advance_ms(200'000);
  remove_expired(server);
  a.call({"MULTI"});
  a.call({"SET", "k", "mine"});
  EXPECT_EQ(a.call({"EXEC"}), "*-1\r\n");
}

TEST_P(WatchedKey, that_had_expired_when_it_was_watched_does_not_stop_the_transaction) {
  RunningServer server;
  WireClient a = server.connect();
  server.run([](Server& s) {
    // The timer has not run yet.
    s.databases[0]->set_expiry(s.databases[0]->insert("k"), 1);
  });
  a.call({"WATCH", "k"});
  remove_expired(server);
  a.call({"MULTI"});
  a.call({"SET", "k", "mine"});
  EXPECT_EQ(a.call({"EXEC"}), "*1\r\n+OK\r\n");
}

TEST_P(WatchedKey, that_had_expired_and_is_set_again_stops_the_transaction) {
  RunningServer server;
  WireClient a = server.connect();
  server.run([](Server& s) { s.databases[0]->set_expiry(s.databases[0]->insert("k"), 1); });
  a.call({"WATCH", "k"});
  remove_expired(server);
  server.connect().call({"SET", "k", "theirs"});
  a.call({"MULTI"});
  a.call({"SET", "k", "mine"});
  EXPECT_EQ(a.call({"EXEC"}), "*-1\r\n");
}
INSTANTIATE_TEST_SUITE_P(Ways, WatchedKey, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "timer" : "access"; });

TEST(Expiry, follows_the_servers_clock) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"SET", "k", "1", "EX", "100"});
  server.advance_ms(99'000);
  EXPECT_EQ(a.call({"GET", "k"}), "$1\r\n1\r\n");
  server.advance_ms(1'500);
  EXPECT_EQ(a.call({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(a.call({"TTL", "k"}), ":-2\r\n");
}

TEST(Expiry, removes_keys_nobody_asks_for) {
  RunningServer server;
  WireClient a = server.connect();
  for (int i = 0; i < 100; ++i) a.call({"SET", "k" + std::to_string(i), "1", "PX", "1"});
  // The timer runs ten times a second; DBSIZE does not touch the keys.
  std::string size;
  for (int i = 0; i < 2000 && size != ":0\r\n"; ++i) size = a.call({"DBSIZE"});
  for (int i = 0; i < 200 && size != ":0\r\n"; ++i) {
    a.call({"BLPOP", "nothing", "0.02"});  // lets the server's time pass
    size = a.call({"DBSIZE"});
  }
  EXPECT_EQ(size, ":0\r\n");
}

TEST(PubSub, reaches_subscribers_of_the_channel_and_of_patterns) {
  RunningServer server;
  WireClient two = server.connect();
  WireClient three = server.connect();
  WireClient speaker = server.connect();
  two.call({"SUBSCRIBE", "news"});
  three.call({"HELLO", "3"});
  three.call({"PSUBSCRIBE", "n*"});
  EXPECT_EQ(speaker.call({"PUBLISH", "news", "hello"}), ":2\r\n");
  EXPECT_EQ(two.reply(), "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
  EXPECT_EQ(three.reply(), ">4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
  EXPECT_EQ(three.call({"PING"}), "+PONG\r\n") << "a RESP3 subscriber may do anything";
  two.close();
  for (int i = 0; i < 1000 && speaker.call({"PUBSUB", "NUMSUB", "news"}) != "*2\r\n$4\r\nnews\r\n:0\r\n";
       ++i) {
  }
  EXPECT_EQ(speaker.call({"PUBLISH", "news", "again"}), ":1\r\n");
}

TEST(Blocking, clients_are_served_in_the_order_in_which_they_came) {
  RunningServer server;
  WireClient first = server.connect();
  WireClient second = server.connect();
  WireClient pusher = server.connect();
  auto wait_for = [&](int blocked) {
    while (server.run([](Server& s) { return s.blocking.size(); }) != static_cast<std::size_t>(blocked)) {
    }
  };
  first.send(encode({"BLPOP", "q", "0"}));
  wait_for(1);
  second.send(encode({"BRPOP", "other", "q", "0"}));
  wait_for(2);
  EXPECT_EQ(pusher.call({"RPUSH", "q", "a", "b", "c"}), ":3\r\n");
  EXPECT_EQ(first.reply(), "*2\r\n$1\r\nq\r\n$1\r\na\r\n");
  EXPECT_EQ(second.reply(), "*2\r\n$1\r\nq\r\n$1\r\nc\r\n");
  EXPECT_EQ(pusher.call({"LRANGE", "q", "0", "-1"}), "*1\r\n$1\r\nb\r\n");
}

TEST(Blocking, a_transaction_serves_when_it_is_over) {
  RunningServer server;
  WireClient waiter = server.connect();
  WireClient pusher = server.connect();
  waiter.send(encode({"BLPOP", "q", "0"}) + encode({"PING"}));
  while (server.run([](Server& s) { return s.blocking.size(); }) != 1) {
  }
  pusher.call({"MULTI"});
  pusher.call({"RPUSH", "q", "a"});
  pusher.call({"LPUSH", "q", "b"});
  pusher.call({"EXEC"});
  EXPECT_EQ(waiter.reply(), "*2\r\n$1\r\nq\r\n$1\r\nb\r\n");
  EXPECT_EQ(waiter.reply(), "+PONG\r\n") << "what was sent meanwhile is executed";
}

TEST(Blocking, waits_on_when_the_key_turns_into_something_else) {
  RunningServer server;
  WireClient waiter = server.connect();
  WireClient other = server.connect();
  waiter.send(encode({"BLPOP", "q", "0"}));
  while (server.run([](Server& s) { return s.blocking.size(); }) != 1) {
  }
  other.call({"SET", "q", "text"});
  other.call({"DEL", "q"});
  EXPECT_TRUE(waiter.quiet());
  other.call({"RPUSH", "x", "1"});
  other.call({"RENAME", "x", "q"});
  EXPECT_EQ(waiter.reply(), "*2\r\n$1\r\nq\r\n$1\r\n1\r\n");
}

TEST(Blocking, client_unblock_ends_the_wait) {
  RunningServer server;
  WireClient waiter = server.connect();
  WireClient other = server.connect();
  const std::string id = waiter.call({"CLIENT", "ID"});
  waiter.send(encode({"BLPOP", "q", "0"}));
  while (server.run([](Server& s) { return s.blocking.size(); }) != 1) {
  }
  EXPECT_EQ(other.call({"CLIENT", "UNBLOCK", id.substr(1, id.size() - 3), "ERROR"}), ":1\r\n");
  EXPECT_EQ(waiter.reply(), "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
}

TEST(Passwords, lock_everything_but_saying_who_one_is) {
  Settings settings = quiet_settings();
  settings.requirepass = "secret";
  RunningServer server(settings);
  WireClient a = server.connect();
  EXPECT_EQ(a.call({"GET", "k"}), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(a.call({"AUTH", "wrong"}), "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  EXPECT_EQ(a.call({"AUTH", "secret"}), ok);
  EXPECT_EQ(a.call({"GET", "k"}), "$-1\r\n");
  WireClient b = server.connect();
  EXPECT_EQ(b.call({"HELLO", "3", "AUTH", "default", "secret"})[0], '%');
  WireClient c = server.connect();
  c.send("*1000\r\n");
  EXPECT_EQ(c.until_closed(), "-ERR Protocol error: unauthenticated multibulk length\r\n");
}

TEST(Monitor, ends_with_reset_and_with_its_connection) {
  RunningServer server;
  WireClient speaker = server.connect();
  {
    WireClient monitor = server.connect();
    EXPECT_EQ(monitor.call({"MONITOR"}), ok);
    speaker.call({"PING"});
    EXPECT_NE(monitor.reply().find("\"PING\""), std::string::npos);
    EXPECT_EQ(monitor.call({"RESET"}), "+RESET\r\n");
    speaker.call({"PING"});
    EXPECT_EQ(monitor.call({"GET", "k"}), "$-1\r\n");
    EXPECT_EQ(monitor.call({"MONITOR"}), ok);
  }
  while (server.run([](Server& s) { return s.monitors.any(); })) std::this_thread::yield();
  EXPECT_EQ(speaker.call({"PING"}), "+PONG\r\n");
}

TEST(ClientList, shows_what_a_client_has_queued) {
  RunningServer server;
  WireClient a = server.connect();
  const auto field = [&](const std::string& name) {
    const std::string line = server.connect().call({"CLIENT", "LIST", "ID", "1"});
    return std::stoul(line.substr(line.find(' ' + name + '=') + name.size() + 2));
  };
  ASSERT_EQ(a.call({"CLIENT", "ID"}), ":1\r\n");
  EXPECT_EQ(field("multi-mem"), 0u);
  const std::size_t before = field("tot-mem");
  a.call({"MULTI"});
  for (int i = 0; i < 4; ++i) a.call({"SET", "k", std::string(100'000, 'x')});
  EXPECT_GE(field("multi-mem"), 400'000u);
  EXPECT_GE(field("tot-mem"), before + 400'000);
  a.call({"DISCARD"});
  EXPECT_EQ(field("multi-mem"), 0u);
}

TEST(SlowLog, shows_no_passwords) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  a.call({"CONFIG", "SET", "requirepass", "secret"});
  a.call({"AUTH", "secret"});
  a.call({"CONFIG", "SET", "tls-key-file-pass", "secret"});
  a.call({"AUTH", "default", "secret"});
  a.call({"HELLO", "2", "AUTH", "default", "secret"});
  const std::string log = a.call({"SLOWLOG", "GET", "100"});
  EXPECT_NE(log.find("$4\r\nAUTH\r\n$10\r\n(redacted)\r\n"), std::string::npos) << log;
  EXPECT_EQ(log.find("secret"), std::string::npos) << log;
}

TEST(Wait, ends_after_its_time_because_there_are_no_replicas) {
  RunningServer server;
  WireClient a = server.connect();
  WireClient b = server.connect();
  const auto until_blocked = [&] {
    while (server.run([](Server& s) { return s.blocking.size(); }) == 0) {
    }
  };
  const std::string id = a.call({"CLIENT", "ID"});
  const std::string number = id.substr(1, id.size() - 3);
  a.send(encode({"WAIT", "1", "100000"}) + encode({"PING"}));
  until_blocked();
  EXPECT_TRUE(a.quiet());
  server.advance_ms(100'000);
  server.run([](Server& s) { s.tick(); });
  EXPECT_EQ(a.reply(), ":0\r\n");
  EXPECT_EQ(a.reply(), "+PONG\r\n");
  a.send(encode({"WAIT", "1", "0"}));
  until_blocked();
  EXPECT_EQ(b.call({"CLIENT", "UNBLOCK", number}), ":1\r\n");
  EXPECT_EQ(a.reply(), ":0\r\n");
  for (const char* for_ever : {"0", "9223372036854775807"}) {
    a.send(encode({"WAIT", "1", for_ever}));
    until_blocked();
    EXPECT_EQ(b.call({"CLIENT", "UNBLOCK", number, "ERROR"}), ":1\r\n");
    EXPECT_EQ(a.reply(), "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
  }
}

TEST(Scan, of_the_keyspace_returns_what_stays) {
  RunningServer server;
  WireClient a = server.connect();
  for (int i = 0; i < 1000; ++i) a.call({"SET", "stay" + std::to_string(i), "1"});
  std::set<std::string> seen;
  std::string cursor = "0";
  int step = 0;
  do {
    const auto parts = elements(a.call({"SCAN", cursor, "COUNT", "20", "MATCH", "stay*"}));
    cursor = parts[1].substr(parts[1].find("\r\n") + 2);
    cursor.resize(cursor.size() - 2);
    const auto keys = elements(parts[2]);
    for (std::size_t i = 1; i < keys.size(); ++i) seen.insert(keys[i]);
    for (int i = 0; i < 200; ++i)
      a.call({step % 2 == 0 ? "SET" : "GETDEL", "x" + std::to_string(step / 2 * 200 + i), "1"});
    ++step;
  } while (cursor != "0");
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(LargeValues, come_back_as_they_went) {
  RunningServer server;
  WireClient a = server.connect();
  for (const std::size_t size : {32767u, 32768u, 65535u, 65536u, 100000u, 3u << 20}) {
    std::string value(size, 'v');
    for (std::size_t i = 0; i < size; i += 997) value[i] = static_cast<char>(i);
    EXPECT_EQ(a.call({"SET", "k", value}), ok);
    EXPECT_EQ(a.call({"GET", "k"}), "$" + std::to_string(size) + "\r\n" + value + "\r\n") << size;
    a.send(encode({"GET", "k"}) + encode({"APPEND", "k", "!"}) + encode({"GET", "k"}));
    EXPECT_EQ(a.reply().size(), value.size() + std::to_string(size).size() + 5);
    a.reply();
    EXPECT_EQ(a.reply(), "$" + std::to_string(size + 1) + "\r\n" + value + "!\r\n");
  }
}

TEST(Options, explain_what_is_wrong) {
  const std::pair<std::vector<std::string>, const char*> table[] = {
      {{"--port", "abc"}, "--port: argument couldn't be parsed into an integer"},
      {{"--nothing", "1"}, "unknown option --nothing"},
      {{"--port"}, "--port needs a value"},
      {{"/nowhere/x.conf"}, "cannot read the configuration file /nowhere/x.conf"},
      {{"--port", "1", "stray", "2"}, "--port: wrong number of arguments"},
  };
  for (const auto& [arguments, error] : table) {
    const auto parsed = parse_options(arguments);
    ASSERT_FALSE(parsed);
    EXPECT_NE(parsed.error().find(error), std::string::npos) << parsed.error();
  }
  const auto good = parse_options({"--port", "7000", "--protected-mode", "--save", ""});
  ASSERT_TRUE(good);
  EXPECT_EQ(good->settings.port, 7000);
  EXPECT_NE(parse_options({"--help"})->answer.find("--rdma-port"), std::string::npos);
}

TEST(Manual, lists_exactly_the_settings_without_effect) {
  std::ifstream file(WEIR_SERVER_MANUAL);
  std::string manual(std::istreambuf_iterator<char>(file), {});
  std::erase(manual, '\\');
  const std::size_t begin = manual.find(".SH ACCEPTED WITHOUT EFFECT");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = manual.substr(begin, manual.find(".SH", begin + 1) - begin);
  for (const SettingSpec& spec : setting_specs()) {
    const bool listed = section.find("\n.B " + std::string(spec.name) + "\n") != std::string::npos;
    EXPECT_EQ(listed, spec.without_effect) << spec.name;
  }
}

}  // namespace
}  // namespace weir::kv::testing
