// The keys that a request names, for random requests of every command: the same as redis-server says, and the
// only ones that the command reads or changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kv/command/key_specs.hpp"
#include "tests/kv/random_request.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/running_server.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {
namespace {

std::string line_of(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += word + ' ';
  return line;
}

std::vector<std::string> behind(std::vector<std::string> first, const std::vector<std::string>& words) {
  first.insert(first.end(), words.begin(), words.end());
  return first;
}

std::vector<const command_syntax::CommandSyntax*> commands_with_keys() {
  std::vector<const command_syntax::CommandSyntax*> all;
  for (const auto& syntax : command_syntax::all_commands()) {
    const Command* command = find_full_name(syntax.name);
    if (command != nullptr && command->run != nullptr && has_keys(*command)) all.push_back(&syntax);
  }
  return all;
}

bool says(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

// Within a transaction, so that nothing waits.
std::string run_at_once(WireClient& client, const std::vector<std::string>& words) {
  client.call({"MULTI"});
  client.call(words);
  return client.call({"EXEC"});
}

// Redis's key specifications are tables, which find keys in words that the command refuses, too. Elsewhere
// the two agree.
TEST(KeysOfRandomRequests, are_those_that_redis_finds) {
  std::mt19937 random(15478);
  RunningServer our_server;
  const RedisServer redis_server;
  WireClient ours = our_server.connect();
  WireClient theirs = redis_server.connect();
  const RequestValues values{.keys = {"k", "l", "m", "n"}, .sha1 = std::string(40, 'a')};
  RandomRequest request(values, random);
  int compared = 0;
  for (const auto* syntax : commands_with_keys()) {
    if (syntax->since[0] > '7' || syntax->since.starts_with("7.2") || syntax->since.starts_with("7.4"))
      continue;
    for (int i = 0; i < 25; ++i) {
      const auto words = request.make(*syntax);
      if (says(words, "STORE") && says(words, "STOREDIST")) continue;  // Redis names both destinations
      if (says(words, "WITHSCORE") || says(words, "IFEQ")) continue;   // options of later versions
      const auto question = behind({"COMMAND", "GETKEYSANDFLAGS"}, words);
      const std::string our_keys = ours.call(question);
      const std::string their_keys = theirs.call(question);
      ++compared;
      if (our_keys == their_keys) continue;
      EXPECT_NE(run_at_once(ours, words).find("\r\n-"), std::string::npos) << line_of(words) << our_keys;
      EXPECT_NE(run_at_once(theirs, words).find("\r\n-"), std::string::npos) << line_of(words) << their_keys;
    }
  }
  EXPECT_GT(compared, 4000);
}

// A dataset with two keys of each type, some of which are called like options.
const std::vector<std::vector<std::string>> dataset{
    {"SET", "string", "7"},
    {"SET", "GET", "bits"},
    {"RPUSH", "list", "3", "1", "2"},
    {"RPUSH", "KEYS", "5", "6"},
    {"SADD", "set", "1", "2", "3"},
    {"SADD", "LIMIT", "2", "3", "4"},
    {"ZADD", "zset", "1", "a", "2", "b", "3", "1"},
    {"ZADD", "BY", "5", "a"},
    {"HSET", "hash", "a", "1", "1", "2"},
    {"GEOADD", "geo", "1", "1", "a", "1.001", "1", "1"},
    {"GEOADD", "STORE", "1", "1", "b"},
    {"PFADD", "STOREDIST", "a", "b"},
    {"XADD", "stream", "1-1", "a", "b"},
    {"XGROUP", "CREATE", "stream", "a", "0"},
    {"XADD", "STREAMS", "1-1", "secret", "word"},
    {"XADD", "STREAMS", "2-1", "secret", "word"},
    {"XGROUP", "CREATE", "STREAMS", "a", "0"},
    {"XGROUP", "CREATE", "STREAMS", "STREAMS", "0"},
    {"XADD", "BLOCK", "1-1", "secret", "word"},
    {"XGROUP", "CREATE", "BLOCK", "a", "0"},
    {"XGROUP", "CREATE", "BLOCK", "STREAMS", "0"},
};

class ObservedServer {
 public:
  ObservedServer() {
    server_.stop_clock();
    client_.call({"FUNCTION", "LOAD",
                  "#!lua name=f\nredis.register_function('a', function(keys) return "
                  "redis.call('exists', unpack(keys)) end)"});
    sha1 = client_.call({"SCRIPT", "LOAD", "return redis.call('exists', unpack(KEYS))"}).substr(5, 40);
    restore({});
    before_ = digests();
  }

  struct Outcome {
    std::string reply;
    std::string found;                           // keyspace_hits
    std::map<std::string, std::string> digests;  // by key
    bool operator==(const Outcome&) const = default;
  };

  // What the request does to a dataset that lacks the keys `without`.
  Outcome outcome_of(const std::vector<std::string>& words, const std::set<std::string>& without) {
    restore(without);
    client_.call({"CONFIG", "RESETSTAT"});
    Outcome outcome{.reply = run_at_once(client_, words), .found = {}, .digests = {}};
    const std::string statistics = client_.call({"INFO", "stats"});
    const std::size_t at = statistics.find("keyspace_hits:");
    outcome.found = statistics.substr(at, statistics.find('\r', at) - at);
    client_.call({"SELECT", "0"});
    outcome.digests = digests();
    return outcome;
  }
  const std::map<std::string, std::string>& before() const { return before_; }
  std::string sha1;

 private:
  // Sends them together and returns the replies.
  std::vector<std::string> call_all(const std::vector<std::vector<std::string>>& requests) {
    std::string bytes;
    for (const auto& words : requests) bytes += encode(words);
    client_.send(bytes);
    std::vector<std::string> replies;
    for (std::size_t i = 0; i < requests.size(); ++i) replies.push_back(client_.reply());
    return replies;
  }
  void restore(const std::set<std::string>& without) {
    std::vector<std::vector<std::string>> requests{{"FLUSHALL"}};
    requests.insert(requests.end(), dataset.begin(), dataset.end());
    for (const std::string& key : without) requests.push_back({"DEL", key});
    call_all(requests);
  }
  std::map<std::string, std::string> digests() {
    std::vector<std::vector<std::string>> requests;
    for (const auto& words : dataset)
      requests.push_back({"DEBUG", "DIGEST-VALUE", words[0] == "XGROUP" ? words[2] : words[1]});
    const auto replies = call_all(requests);
    std::map<std::string, std::string> all;
    for (std::size_t i = 0; i < requests.size(); ++i) all[requests[i][2]] = replies[i];
    return all;
  }

  static Settings settings() {
    Settings settings = quiet_settings();
    settings.enable_debug_command = 1;
    return settings;
  }

  RunningServer server_{settings()};
  WireClient client_ = server_.connect();
  std::map<std::string, std::string> before_;
};

std::set<std::string> keys_named(const std::vector<std::string>& words) {
  std::vector<Argument> arguments;
  for (const std::string& word : words) arguments.push_back({word, nullptr});
  std::set<std::string> named;
  const Command* command = find_command(Arguments(arguments));
  for (const KeyInUse& one : keys_in(*command, arguments).value_or(std::vector<KeyInUse>()))
    named.emplace(one.key);
  return named;
}

// Run with all keys and with only those that the request names, a command must do the same. Replies by chance
// may differ.
TEST(KeysOfRandomRequests, are_all_that_the_command_touches) {
  std::mt19937 random(45);
  ObservedServer server;
  RequestValues values{.keys = {}, .sha1 = server.sha1};
  for (const auto& [key, digest] : server.before()) values.keys.push_back(key);
  values.misleading = {"STREAMS", "STORE", "STOREDIST", "KEYS",  "GET",
                       "BY",      "LIMIT", "BLOCK",     "COUNT", "GROUP"};
  RandomRequest request(values, random);
  for (const auto* syntax : commands_with_keys()) {
    const Command& command = *find_full_name(syntax->name);
    const bool by_chance = tips(command).find("nondeterministic_output") != std::string_view::npos;
    const int rounds = command.has(flag::movablekeys) ? 30 : 3;
    for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
      const auto words = request.make(*syntax);
      const auto named = keys_named(words);
      std::set<std::string> others;
      for (const auto& [key, digest] : server.before()) {
        if (!named.contains(key)) others.insert(key);
      }
      auto with_all = server.outcome_of(words, {});
      for (const std::string& key : others)
        EXPECT_EQ(with_all.digests[key], server.before().at(key)) << key << " by " << line_of(words);
      if (by_chance) continue;
      auto with_named = server.outcome_of(words, others);
      for (const std::string& key : others) with_named.digests[key] = with_all.digests[key];
      EXPECT_EQ(with_all.reply, with_named.reply) << line_of(words);
      EXPECT_EQ(with_all.found, with_named.found) << line_of(words);
      EXPECT_EQ(with_all.digests, with_named.digests) << line_of(words);
    }
  }
}

// What is a key depends on the words before it, which a user chooses.
TEST(RightsToKeys, go_by_the_keys_that_the_command_takes) {
  RunningServer server;
  WireClient admin = server.connect();
  admin.call({"ACL", "SETUSER", "u", "on", "nopass", "+@all", "~streams", "~my:*", "~GET"});
  admin.call({"XADD", "secret", "*", "password", "hunter2"});
  admin.call({"XGROUP", "CREATE", "secret", "g", "0"});
  admin.call({"XADD", "my:s", "1-1", "a", "b"});
  admin.call({"XGROUP", "CREATE", "my:s", "STREAMS", "0"});
  admin.call({"GEOADD", "my:geo", "1", "1", "a"});
  admin.call({"RPUSH", "my:list", "1"});
  WireClient user = server.connect();
  user.call({"AUTH", "u", "x"});
  using Words = std::vector<std::string>;
  const struct {
    Words words;
    bool allowed;
  } rows[] = {
      {{"XREADGROUP", "NOACK", "GROUP", "g", "streams", "streams", "secret", ">"}, false},
      {{"XREADGROUP", "COUNT", "9", "GROUP", "g", "streams", "streams", "secret", "0"}, false},
      {{"XREADGROUP", "GROUP", "streams", "my:c", "streams", "secret", ">"}, false},
      {{"XREADGROUP", "BLOCK", "1", "NOACK", "GROUP", "g", "STREAMS", "STREAMS", "secret", ">"}, false},
      {{"XREADGROUP", "NOACK", "GROUP", "STREAMS", "c", "STREAMS", "my:s", ">"}, true},
      {{"XREADGROUP", "COUNT", "1", "GROUP", "STREAMS", "STREAMS", "STREAMS", "my:s", ">"}, true},
      {{"GEORADIUS", "my:geo", "1", "1", "9", "m", "STORE", "my:a", "STORE", "secret"}, false},
      {{"GEORADIUS", "my:geo", "1", "1", "9", "m", "STORE", "secret", "STOREDIST", "my:a"}, true},
      {{"SORT", "my:list", "STORE", "GET", "STORE", "secret"}, false},
      {{"SORT", "my:list", "STORE", "STORE", "STORE", "my:a"}, true},
  };
  for (const auto& row : rows) {
    std::string line;
    for (const std::string& word : row.words) line += word + ' ';
    const std::string reply = user.call(row.words);
    EXPECT_EQ(reply.starts_with("-NOPERM"), !row.allowed) << line << reply;
    if (row.allowed) {
      EXPECT_FALSE(reply.starts_with("-")) << line << reply;
    }
  }
}

}  // namespace
}  // namespace weir::kv::testing
