// Why a request is refused: a row for each rule, and which of two rules answers.
#include "kv/server/refusal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/kv/aof.hpp"

namespace weir::kv::testing {
namespace {

using Words = std::vector<std::string>;

struct Row {
  std::string_view rule;
  std::vector<Words> before;                // what the client sends first
  Words refused;                            // and then
  std::string reply;                        // how the reply to that begins
  std::function<void(Server&)> state = {};  // set on the server's thread in between
  std::function<void(Settings&)> given = {};
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"arity", {}, {"GET"}, "-ERR wrong number of arguments for 'get' command"},
      {"arity", {}, {"CONFIG"}, "-ERR wrong number of arguments for 'config' command"},
      {"enabled", {}, {"DEBUG", "SLEEP", "0"}, "-ERR DEBUG command not allowed."},
      {"password", {}, {"GET", "k"}, "-NOAUTH ", {}, [](Settings& s) { s.requirepass = "secret"; }},
      {"transaction", {{"MULTI"}}, {"SAVE"}, "-ERR Command not allowed inside a transaction"},
      {"permission", {{"ACL", "SETUSER", "default", "-set"}}, {"SET", "k", "v"}, "-NOPERM "},
      {"permission", {{"ACL", "SETUSER", "default", "resetkeys", "~a*"}}, {"GET", "b"}, "-NOPERM "},
      {"script", {}, {"GET", "k"}, "-BUSY ", [](Server& s) { s.script_suspended = true; }},
      {"memory", {{"CONFIG", "SET", "maxmemory", "1"}}, {"SET", "k", "v"}, "-OOM "},
      {"memory", {{"CONFIG", "SET", "maxmemory", "1"}, {"MULTI"}}, {"GET", "k"}, "-OOM "},
      {"snapshot",
       {{"SET", "k", "v"}, {"SAVE"}},
       {"SET", "k", "w"},
       "-MISCONF Redis is configured to save RDB snapshots",
       {},
       [](Settings& s) { s.dir += "/absent", s.save = "3600 1"; }},
      {"replication", {{"CONFIG", "SET", "min-replicas-to-write", "1"}}, {"SET", "k", "v"}, "-NOREPLICAS "},
      {"replication", {{"REPLICAOF", "127.0.0.1", "1"}}, {"SET", "k", "v"}, "-READONLY "},
      {"stale",
       {{"REPLICAOF", "127.0.0.1", "1"}, {"CONFIG", "SET", "replica-serve-stale-data", "no"}},
       {"GET", "k"},
       "-MASTERDOWN "},
      {"loading", {}, {"GET", "k"}, "-LOADING ", [](Server& s) { s.loading.emplace(); }},
      {"monitor", {{"MONITOR"}}, {"GET", "k"}, "-ERR Replica can't interact with the keyspace"},
      {"subscribed", {{"SUBSCRIBE", "c"}}, {"GET", "k"}, "-ERR Can't execute 'get'"},
      // The first rule answers.
      {"arity", {}, {"GET"}, "-ERR wrong number", {}, [](Settings& s) { s.requirepass = "secret"; }},
      {"password",
       {},
       {"GET", "k"},
       "-NOAUTH ",
       [](Server& s) { s.loading.emplace(); },
       [](Settings& s) { s.requirepass = "secret"; }},
      {"memory",
       {{"CONFIG", "SET", "maxmemory", "1", "min-replicas-to-write", "1"}},
       {"SET", "k", "v"},
       "-OOM "},
  };
  return all;
}

class Refusal : public ::testing::TestWithParam<Row> {};

TEST_P(Refusal, answers_with_the_error_of_its_rule) {
  const Row& row = GetParam();
  const ScratchFolder folder;
  Settings settings = quiet_settings();
  settings.dir = folder.path();
  if (row.given) row.given(settings);
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  for (const Words& words : row.before) client.call(words);
  if (row.state) server.run(row.state);
  EXPECT_EQ(client.call(row.refused).substr(0, row.reply.size()), row.reply);
  server.run([](Server& s) { s.loading.reset(), s.script_suspended = false; });
}

INSTANTIATE_TEST_SUITE_P(Rows, Refusal, ::testing::ValuesIn(rows()), [](const auto& row) {
  return std::to_string(row.index) + "_" + std::string(row.param.rule);
});

TEST(RefusalByLog, answers_when_the_log_cannot_be_written) {
  const ScratchFolder folder;
  BadDisk disk;
  RunningServer server(keeping(folder, aof::Sync::no), disk.disk());
  WireClient client = server.connect();
  disk.write_error = ENOSPC;
  client.call({"SET", "a", "1"});
  EXPECT_EQ(client.call({"SET", "a", "2"}).substr(0, 24), "-MISCONF Errors writing ");
}

TEST(RefusalRules, have_a_row_each) {
  for (const RefusalRule& rule : refusal_rules()) {
    const bool has_row = std::ranges::any_of(rows(), [&](const Row& row) { return row.rule == rule.name; });
    EXPECT_TRUE(has_row || rule.name == "log") << rule.name;
  }
}

TEST(RefusalOfExec, covers_what_was_queued_before_the_data_went_stale) {
  RunningServer server;
  WireClient client = server.connect();
  WireClient other = server.connect();
  for (const Words& words : {Words{"MULTI"}, Words{"GET", "k"}}) client.call(words);
  other.call({"CONFIG", "SET", "replica-serve-stale-data", "no"});
  other.call({"REPLICAOF", "127.0.0.1", "1"});
  const std::string reply = client.call({"EXEC"});
  EXPECT_EQ(reply.substr(0, 10), "-EXECABORT") << reply;
  EXPECT_NE(reply.find("MASTERDOWN"), std::string::npos) << reply;
}

}  // namespace
}  // namespace weir::kv::testing
