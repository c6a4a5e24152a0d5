// The effect that each write command reports: replayed into a second server, the words make equal data.
#include <algorithm>
#include <random>
#include <set>

#include "kv/resp/words.hpp"
#include "kv/text/glob.hpp"
#include "tests/kv/effect_rows.hpp"
#include "tests/kv/recorded_effects.hpp"

namespace weir::kv::testing {
namespace {

std::string joined(const std::vector<RecordedEffects::Told>& told) {
  std::string text;
  for (const auto& [db, request] : told) text.append(text.empty() ? "" : "; ").append(words_of(request));
  return text;
}

// A server whose effects are replayed into a second one.
class Replayed {
 public:
  std::string call(std::string_view line) { return client_.call(*split_words(line)); }
  // Replays the effects since the last call and returns them.
  std::vector<RecordedEffects::Told> pass_on() {
    auto told = effects_.take();
    replay(copys_client_, told);
    return told;
  }
  void expect_equal_data() { EXPECT_EQ(state_of(copy), state_of(original)); }

  // Its clock is far behind, so nothing expires there unless an effect says so.
  RunningServer copy;
  RunningServer original;

 private:
  WireClient client_ = original.connect();
  WireClient copys_client_ = copy.connect();
  RecordedEffects effects_{original};
};

TEST(Effects, every_write_command_has_a_row) {
  std::set<std::string> written;
  for (const EffectRow& row : all_effect_rows()) {
    written.emplace(row.name);
    EXPECT_NE(find_full_name(row.name), nullptr) << row.name;
  }
  const auto expect_row = [&](const Command& command) {
    if (command.has(flag::write)) {
      EXPECT_TRUE(written.contains(command.full_name())) << command.full_name();
    }
  };
  for (const Command* command : all_commands()) {
    expect_row(*command);
    for (const Command& subcommand : command->subcommands) expect_row(subcommand);
  }
}

TEST(Effects, of_each_command_are_told_in_words_that_replay_to_equal_data) {
  Replayed servers;
  for (const EffectRow& row : all_effect_rows()) {
    SCOPED_TRACE(row.command);
    servers.call("FLUSHALL");
    servers.call("FUNCTION FLUSH");
    for (const std::string& line : split_at_semicolons(row.before))
      ASSERT_NE(servers.call(line)[0], '-') << line;
    servers.pass_on();
    servers.call(row.command);
    const std::string told = joined(servers.pass_on());
    EXPECT_TRUE(glob_match(row.told, told)) << "told: " << told;
    servers.expect_equal_data();
  }
}

// From any data: the rows' commands in random order, in transactions and alone, while time passes.
TEST(Effects, of_a_random_history_replay_to_equal_data) {
  std::mt19937 random(20);
  Replayed servers;
  servers.original.stop_clock();
  std::vector<std::string> lines;
  for (const EffectRow& row : all_effect_rows()) {
    for (const std::string& line : split_at_semicolons(row.before)) lines.push_back(line);
    if (!row.name.starts_with("b") || row.name.starts_with("bit")) lines.emplace_back(row.command);
  }
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("FLUSH"); });
  for (int step = 0; step < 4000; ++step) {
    const bool transaction = random() % 8 == 0;
    if (transaction) servers.call("MULTI");
    for (auto left = transaction ? random() % 4 : 1; left > 0; --left)
      servers.call(lines[random() % lines.size()]);
    if (transaction) servers.call("EXEC");
    if (random() % 16 == 0) servers.call("SELECT " + std::to_string(random() % 3));
    if (random() % 64 == 0) servers.original.advance_ms(60'000);
    if (random() % 64 == 0) pass_ms(servers.original, 1);
  }
  // Expire everything that is due. A timer would otherwise remove it after the last effects were taken.
  pass_ms(servers.original, 1);
  servers.pass_on();
  servers.expect_equal_data();
}

TEST(Effects, of_a_transaction_stand_between_multi_and_exec) {
  Replayed servers;
  for (const char* line : {"MULTI", "SET a 1", "GET a", "SELECT 2", "INCR b", "EXEC"}) servers.call(line);
  const auto told = servers.pass_on();
  EXPECT_EQ(joined(told), "MULTI; SET a 1; INCR b; EXEC");
  EXPECT_EQ(told[1].db, 0);
  EXPECT_EQ(told[2].db, 2);
  servers.expect_equal_data();
}

TEST(Effects, of_a_transaction_with_one_stand_alone) {
  Replayed servers;
  for (const char* line : {"MULTI", "GET a", "SET a 1", "EXEC", "MULTI", "GET a", "EXEC"}) servers.call(line);
  EXPECT_EQ(joined(servers.pass_on()), "SET a 1");
}

TEST(Effects, of_a_blocked_client_follow_those_that_woke_it) {
  Replayed servers;
  WireClient waiting = servers.original.connect();
  waiting.send(encode({"BLPOP", "l", "0"}));
  servers.original.run([](Server&) {});
  while (servers.original.run([](Server& s) { return s.blocking.size(); }) == 0) std::this_thread::yield();
  for (const char* line : {"MULTI", "RPUSH l a", "RPUSH l b", "EXEC"}) servers.call(line);
  EXPECT_EQ(waiting.reply(), "*2\r\n$1\r\nl\r\n$1\r\na\r\n");
  EXPECT_EQ(joined(servers.pass_on()), "MULTI; RPUSH l a; RPUSH l b; EXEC; LPOP l");
  servers.expect_equal_data();
}

TEST(Effects, tell_a_key_that_expired_before_the_command_that_found_it) {
  Replayed servers;
  servers.original.stop_clock();
  servers.call("SET k 5 PX 10");
  servers.original.advance_ms(20);
  servers.call("INCR k");
  EXPECT_TRUE(glob_match("SET k 5 PXAT *; MULTI; DEL k; INCR k; EXEC", joined(servers.pass_on())));
  servers.expect_equal_data();
}

TEST(Effects, tell_keys_that_expire_unseen) {
  Replayed servers;
  servers.original.stop_clock();
  servers.call("SELECT 1");
  servers.call("SET k 5 PX 10");
  servers.pass_on();
  pass_ms(servers.original, 20);
  const auto told = servers.pass_on();
  ASSERT_EQ(joined(told), "DEL k");
  EXPECT_EQ(told[0].db, 1);
}

TEST(Effects, tell_a_field_that_expired_before_the_command_that_found_it) {
  Replayed servers;
  servers.original.stop_clock();
  servers.call("HSET h a 5 b 6");
  servers.call("HPEXPIRE h 10 FIELDS 1 a");
  servers.original.run([](Server& s) { s.expires_in_time = false; });
  servers.original.advance_ms(20);
  servers.call("HINCRBY h a 1");
  EXPECT_TRUE(glob_match("HSET h a 5 b 6; HPEXPIREAT h * FIELDS 1 a; MULTI; HDEL h a; HINCRBY h a 1; EXEC",
                         joined(servers.pass_on())));
  servers.expect_equal_data();
}

TEST(Effects, tell_fields_that_expire_unseen) {
  Replayed servers;
  servers.original.stop_clock();
  servers.call("SELECT 1");
  servers.call("HSET h a 5 b 6 c 7");
  servers.call("HPEXPIRE h 200000 FIELDS 1 b");
  servers.call("HPEXPIRE h 100000 FIELDS 1 a");
  servers.pass_on();
  pass_ms(servers.original, 300'000);
  const auto told = servers.pass_on();
  ASSERT_EQ(joined(told), "HDEL h a b");
  EXPECT_EQ(told[0].db, 1);
  servers.expect_equal_data();
}

TEST(Effects, tell_keys_that_are_evicted) {
  Replayed servers;
  for (int i = 0; i < 100; ++i) servers.call("SET key" + std::to_string(i) + " " + std::string(2000, 'x'));
  servers.call("CONFIG SET maxmemory-policy allkeys-random maxmemory " +
               std::to_string(used_memory() - 100'000));
  servers.call("GET a");
  servers.call("CONFIG SET maxmemory 0");
  servers.pass_on();
  EXPECT_LT(servers.original.run([](Server& s) { return s.databases[0]->size(); }), 100u);
  servers.expect_equal_data();
}

TEST(Effects, of_a_script_that_was_suspended_come_in_one_piece) {
  Settings settings = quiet_settings();
  settings.busy_reply_threshold_ms = 1;
  RunningServer server(std::move(settings));
  RecordedEffects effects(server);
  WireClient client = server.connect();
  client.call({"EVAL", "redis.call('set','a',1) for i = 1, 3000000 do end redis.call('set','b',2)", "0"});
  EXPECT_NE(server.log().find("Slow script detected"), std::string::npos);
  EXPECT_EQ(joined(effects.take()), "MULTI; set a 1; set b 2; EXEC");
}

TEST(Effects, are_not_gathered_while_nobody_listens) {
  RunningServer server;
  WireClient client = server.connect();
  client.call({"SET", "a", "1", "EX", "5"});
  RecordedEffects effects(server);
  client.call({"GET", "a"});
  EXPECT_EQ(joined(effects.take()), "");
  client.call({"SET", "a", "2"});
  EXPECT_EQ(joined(effects.take()), "SET a 2");
}

TEST(Effects, say_unlink_where_settings_ask_for_it) {
  Settings settings = quiet_settings();
  settings.lazyfree_lazy_expire = settings.lazyfree_lazy_server_del = true;
  RunningServer server(std::move(settings));
  RecordedEffects effects(server);
  WireClient client = server.connect();
  const std::string payload = [&] {
    client.call({"SET", "k", "v"});
    const std::string dumped = client.call({"DUMP", "k"});
    const std::size_t begin = dumped.find("\r\n") + 2;
    return dumped.substr(begin, dumped.size() - begin - 2);
  }();
  client.call({"SADD", "s", "a", "b"});
  effects.take();
  client.call({"SPOP", "s", "2"});
  client.call({"RESTORE", "k", "1", payload, "REPLACE", "ABSTTL"});
  client.call({"SET", "k", "v"});
  client.call({"EXPIRE", "k", "-1"});
  EXPECT_EQ(joined(effects.take()), "UNLINK s; UNLINK k; SET k v; UNLINK k");
}

}  // namespace
}  // namespace weir::kv::testing
