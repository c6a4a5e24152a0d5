// Redis's answers are the specification: each line of oracle/*.txt goes to Debian's redis-server and to this
// server, and the raw replies must be equal, byte for byte, in RESP2 and in RESP3.
//
// A line is a command in redis-cli's quoting. It may begin with a sign:
//   ~  the elements of the reply may come in any order (members of hash tables do)
//   ^  only the kind of the reply is compared (random or timed values)
//   =N the line has N replies
//   %  the counts of entries that a group has read are not compared
//   !A>B where Redis 7.0 replies A, this server replies B, as later versions do
//   >  the rest of the line is raw bytes in quotes; everything up to the end of the connection is compared,
//      and a new connection takes its place
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "kv/resp/words.hpp"
#include "tests/kv/group_counts.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/running_server.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {
namespace {

RedisServer& redis() {
  static RedisServer server;
  return server;
}

std::string sorted(const std::string& reply) {
  if (reply.empty() || std::string_view("*~%>").find(reply[0]) == std::string_view::npos) return reply;
  std::vector<std::string> parts = elements(reply);
  // The elements of a map are pairs.
  std::vector<std::string> units;
  const std::size_t step = reply[0] == '%' ? 2 : 1;
  for (std::size_t i = 1; i + step <= parts.size(); i += step) {
    units.push_back(step == 2 ? parts[i] + parts[i + 1] : parts[i]);
  }
  std::ranges::sort(units);
  std::string joined = parts[0];
  for (const std::string& unit : units) joined += unit;
  return joined;
}

struct Line {
  std::size_t number = 0;
  std::string text;
  bool any_order = false;
  bool kind_only = false;
  bool raw = false;
  bool without_counts = false;
  int replies = 1;
  std::string before, since;  // what Redis 7.0 replies, and what is replied since
  std::vector<std::string> words;
};

std::vector<Line> load(const std::string& file) {
  std::vector<Line> lines;
  std::ifstream in(std::string(WEIR_ORACLE_FOLDER) + "/" + file);
  EXPECT_TRUE(in.is_open()) << file;
  std::string text;
  for (std::size_t number = 1; std::getline(in, text); ++number) {
    if (text.empty() || text[0] == '#') continue;
    Line line;
    line.number = number;
    line.text = text;
    std::string_view rest = text;
    for (bool sign = true; sign;) {
      sign = true;
      if (rest[0] == '~') {
        line.any_order = true;
      } else if (rest[0] == '^') {
        line.kind_only = true;
      } else if (rest[0] == '>') {
        line.raw = true;
      } else if (rest[0] == '%') {
        line.without_counts = true;
      } else if (rest[0] == '!') {
        const std::size_t middle = rest.find('>');
        const std::size_t end = rest.find(' ');
        line.before = rest.substr(1, middle - 1);
        line.since = rest.substr(middle + 1, end - middle - 1);
        rest.remove_prefix(end - 1);
      } else if (rest[0] == '=') {
        line.replies = rest[1] - '0';
        rest.remove_prefix(1);
      } else {
        sign = false;
        continue;
      }
      rest.remove_prefix(1);
      while (rest[0] == ' ') rest.remove_prefix(1);
    }
    auto words = split_words(rest);
    EXPECT_TRUE(words && !words->empty()) << file << ':' << number;
    line.words = *words;
    lines.push_back(line);
  }
  return lines;
}

std::string ask(WireClient& client, const Line& line) {
  client.send(encode(line.words));
  std::string replies;
  for (int i = 0; i < line.replies; ++i) {
    const std::string reply = client.reply();
    replies += line.kind_only        ? reply.substr(0, 1)
               : line.any_order      ? sorted(reply)
               : line.without_counts ? without_group_counts(reply)
                                     : reply;
  }
  return replies;
}

std::string bulk(const std::string& text) {
  return '$' + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

// The reply that is expected of this server where Redis's is `theirs`.
std::string expected(const Line& line, const std::string& theirs) {
  if (line.before.empty()) return theirs;
  EXPECT_EQ(theirs, bulk(line.before));
  return bulk(line.since);
}

class Oracle : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Oracle, answers_as_redis_does) {
  const auto [file, protocol] = GetParam();
  RunningServer ours;
  auto fresh = [&protocol = protocol](const std::string& path) {
    WireClient client = WireClient::unix_socket(path);
    client.call({"HELLO", protocol});
    return client;
  };
  auto weir = std::make_unique<WireClient>(fresh(ours.path()));
  auto reference = std::make_unique<WireClient>(fresh(redis().path()));
  reference->call({"FLUSHALL"});
  for (const Line& line : load(file)) {
    SCOPED_TRACE(std::string(file) + ':' + std::to_string(line.number) + ": " + line.text);
    try {
      if (line.raw) {
        weir->send(line.words[0]);
        reference->send(line.words[0]);
        ::shutdown(weir->fd(), SHUT_WR);
        ::shutdown(reference->fd(), SHUT_WR);
        EXPECT_EQ(weir->until_closed(), reference->until_closed());
        weir = std::make_unique<WireClient>(fresh(ours.path()));
        reference = std::make_unique<WireClient>(fresh(redis().path()));
      } else {
        EXPECT_EQ(ask(*weir, line), expected(line, ask(*reference, line)));
      }
    } catch (const std::exception& problem) {
      FAIL() << problem.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Oracle,
    ::testing::Combine(::testing::Values("protocol.txt", "connection.txt", "keys.txt", "expiry.txt",
                                         "strings.txt", "bits.txt", "hashes.txt", "lists.txt", "sets.txt",
                                         "zsets.txt", "geo.txt", "streams.txt", "stream_groups.txt",
                                         "hyperloglog.txt", "sort.txt", "transactions.txt", "scripting.txt",
                                         "functions.txt", "pubsub.txt", "command.txt", "server.txt"),
                       ::testing::Values("2", "3")),
    [](const auto& instance) {
      const std::string file = std::get<0>(instance.param);
      return file.substr(0, file.find('.')) + "_resp" + std::get<1>(instance.param);
    });

// What MONITOR shows of `commands`, without the times and addresses.
std::vector<std::string> monitored(const std::string& path,
                                   const std::vector<std::vector<std::string>>& commands) {
  WireClient monitor = WireClient::unix_socket(path);
  EXPECT_EQ(monitor.call({"MONITOR"}), "+OK\r\n");
  WireClient speaker = WireClient::unix_socket(path);
  for (const auto& words : commands) speaker.call(words);
  speaker.call({"ECHO", "the end"});
  std::vector<std::string> lines;
  do {
    const std::string line = monitor.reply();
    const std::size_t place = line.find(" [");
    const std::size_t words = line.find(']');
    lines.push_back(line.substr(place, line.find(':') - place) + line.substr(words));
  } while (lines.back().find("the end") == std::string::npos);
  return lines;
}

TEST(OracleMonitor, shows_what_redis_shows) {
  const std::vector<std::vector<std::string>> commands{
      {"SET", "k", std::string("a\0b\r\n\t\a\b\"\\\x7f\xff '", 14)},
      {"get", "k"},
      {"MULTI"},
      {"INCR", "n"},
      {"GET", "k"},
      {"EXEC"},
      {"SELECT", "3"},
      {"GET", "12345"},
      {"AUTH", "default", "secret"},
      {"HELLO", "3", "AUTH", "default", "secret", "SETNAME", "x"},
      {"HELLO", "2"},
      {"NOSUCH", "thing"},
      {"GET"},
      {"LPUSH", "k", "wrong", "type"},
      {"CONFIG", "GET", "port"},
      {"CLIENT", "LIST"},
      {"CLIENT", "ID"},
      {"BLPOP", "nothing", "0.01"},
      {"OBJECT", "ENCODING", "k"},
      {"PUBLISH", "a", "b"},
  };
  RunningServer ours;
  EXPECT_EQ(monitored(ours.path(), commands), monitored(redis().path(), commands));
}

// What a client that waits for a replica receives: at once, or when another client releases it.
std::string waited(const std::string& path, const std::string& timeout_ms) {
  WireClient waiter = WireClient::unix_socket(path);
  WireClient other = WireClient::unix_socket(path);
  const std::string id = waiter.call({"CLIENT", "ID"});
  const std::vector<std::string> let_go{"CLIENT", "UNBLOCK", id.substr(1, id.size() - 3), "ERROR"};
  waiter.send(encode({"WAIT", "1", timeout_ms}));
  while (waiter.quiet() && other.call(let_go) == ":0\r\n") {
  }
  return waiter.reply();
}

TEST(OracleWait, lasts_beyond_what_the_clock_reaches) {
  RunningServer ours;
  for (const char* timeout_ms : {"0", "9000000000000000000", "9223372036854775000", "9223372036854775807"}) {
    const std::string theirs = waited(redis().path(), timeout_ms);
    EXPECT_EQ(waited(ours.path(), timeout_ms), theirs) << timeout_ms;
    EXPECT_EQ(theirs.substr(0, 10), "-UNBLOCKED") << timeout_ms;
  }
}

// Those names in `offered` that COMMAND LIST has, too: some commands are from later versions of Redis.
std::set<std::string> listed(WireClient& client, const std::vector<std::string>& filter,
                             const std::set<std::string>& offered) {
  std::vector<std::string> words{"COMMAND", "LIST", "FILTERBY"};
  words.insert(words.end(), filter.begin(), filter.end());
  const std::vector<std::string> names = elements(client.call(words));
  std::set<std::string> found(names.begin() + 1, names.end());
  std::erase_if(found, [&](const std::string& name) { return !offered.empty() && offered.count(name) == 0; });
  return found;
}

TEST(OracleCategories, hold_what_they_hold_in_redis_of_our_commands) {
  RunningServer server;
  WireClient ours = server.connect();
  WireClient theirs = WireClient::unix_socket(redis().path());
  const std::set<std::string> offered = listed(ours, {"PATTERN", "*"}, listed(theirs, {"PATTERN", "*"}, {}));
  for (const char* category :
       {"keyspace", "read",   "write",       "set",       "sortedset",  "list",       "hash",
        "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",     "admin",
        "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction"}) {
    EXPECT_EQ(listed(ours, {"ACLCAT", category}, offered), listed(theirs, {"ACLCAT", category}, offered))
        << category;
  }
}

// What COMMAND DOCS says of a command, from that field on.
std::string docs_from(WireClient& client, const std::string& name, const std::string& field) {
  const std::string reply = client.call({"COMMAND", "DOCS", name});
  const std::size_t at = reply.find("$" + std::to_string(field.size()) + "\r\n" + field + "\r\n");
  return at == std::string::npos ? "" : reply.substr(at);
}

// Commands that take more than in Redis 7.0, as later versions do.
const std::set<std::string> grown{"client|kill", "client|list", "geosearch", "geosearchstore",
                                  "hscan",       "set",         "zrank",     "zrevrank"};

TEST(OracleDocs, have_the_arguments_and_versions_that_redis_has_of_our_commands) {
  RunningServer server;
  WireClient ours = server.connect();
  WireClient theirs = WireClient::unix_socket(redis().path());
  const std::set<std::string> offered = listed(ours, {"PATTERN", "*"}, listed(theirs, {"PATTERN", "*"}, {}));
  EXPECT_GT(offered.size(), 300u);
  for (const std::string& name : offered) {
    constexpr std::size_t since_bytes = 22;  // "$5 since $5 7.0.0", the ends of lines included
    EXPECT_EQ(docs_from(ours, name, "since").substr(0, since_bytes),
              docs_from(theirs, name, "since").substr(0, since_bytes))
        << name;
    if (!docs_from(theirs, name, "subcommands").empty()) continue;
    const bool same = docs_from(ours, name, "arguments") == docs_from(theirs, name, "arguments");
    EXPECT_EQ(same, !grown.contains(name)) << name << "\n"
                                           << docs_from(ours, name, "arguments") << "\n"
                                           << docs_from(theirs, name, "arguments");
  }
}

}  // namespace
}  // namespace weir::kv::testing
