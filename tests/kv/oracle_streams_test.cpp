// Streams compared with redis-server beyond lists of lines: clients that wait, and random commands.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

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

std::string ask(WireClient& client, std::string_view line) { return client.call(*split_words(line)); }

void until_blocked(WireClient& client, int count) {
  const std::string wanted = "blocked_clients:" + std::to_string(count) + "\r\n";
  while (client.call({"INFO", "clients"}).find(wanted) == std::string::npos) {
  }
}

// One client acts while each of the others waits with one command; returns what all of them receive, in that
// order.
struct Scene {
  const char* name;
  std::vector<const char*> before;
  std::vector<const char*> waiting;
  std::vector<const char*> then;
};

std::vector<std::string> play(const std::string& path, const Scene& scene, const std::string& protocol) {
  WireClient actor = WireClient::unix_socket(path);
  actor.call({"HELLO", protocol});
  std::vector<std::string> heard{actor.call({"FLUSHALL"})};
  for (const char* line : scene.before) heard.push_back(ask(actor, line));
  std::vector<WireClient> waiters;
  for (const char* line : scene.waiting) {
    waiters.push_back(WireClient::unix_socket(path));
    waiters.back().call({"HELLO", protocol});
    waiters.back().send(encode(*split_words(line)));
    until_blocked(actor, static_cast<int>(waiters.size()));
  }
  for (const char* line : scene.then) heard.push_back(ask(actor, line));
  // When this is answered, everything sent to the waiting clients has left.
  actor.call({"PING"});
  for (WireClient& waiter : waiters) heard.push_back(waiter.quiet() ? "still waits" : waiter.reply());
  waiters.clear();
  until_blocked(actor, 0);
  return heard;
}

const Scene scenes[] = {
    {"reader_gets_what_is_added", {"XADD s 1-1 a 1"}, {"XREAD BLOCK 0 STREAMS s $"}, {"XADD s 2-1 b 2"}},
    {"reader_of_a_stream_that_comes", {}, {"XREAD BLOCK 0 STREAMS s $"}, {"XADD s 2-1 b 2"}},
    {"reader_of_ids_to_come",
     {"XADD s 1-1 a 1"},
     {"XREAD BLOCK 0 STREAMS s 2"},
     {"XADD s 1-2 b 2", "XADD s 2-0 b 2", "XADD s 2-1 b 2"}},
    {"all_readers_are_served",
     {},
     {"XREAD BLOCK 0 STREAMS s $", "XREAD BLOCK 0 STREAMS s 0", "XREAD COUNT 1 BLOCK 0 STREAMS x s 0 0"},
     {"MULTI", "XADD s 1-1 a 1", "XADD s 2-1 a 1", "EXEC"}},
    {"only_the_stream_that_came_first_answers",
     {},
     {"XREAD BLOCK 0 STREAMS a b 0 0"},
     {"MULTI", "XADD b 1-1 a 1", "XADD a 2-1 a 1", "EXEC"}},
    {"another_type_serves_no_reader",
     {},
     {"XREAD BLOCK 0 STREAMS s 0"},
     {"RPUSH s x", "DEL s", "XADD s 1-1 a 1"}},
    {"copy_rename_and_swap_serve_readers",
     {"XADD t 1-1 a 1"},
     {"XREAD BLOCK 0 STREAMS s 0", "XREAD BLOCK 0 STREAMS u 0"},
     {"COPY t s", "RENAME t u"}},
    {"consumers_share_what_is_added",
     {"XGROUP CREATE s g $ MKSTREAM"},
     {"XREADGROUP GROUP g a BLOCK 0 COUNT 1 STREAMS s >", "XREADGROUP GROUP g b BLOCK 0 COUNT 1 STREAMS s >",
      "XREADGROUP GROUP g c BLOCK 0 NOACK STREAMS s >"},
     {"MULTI", "XADD s 1-1 a 1", "XADD s 2-1 a 1", "EXEC", "XPENDING s g", "XINFO GROUPS s"}},
    {"groups_do_not_share",
     {"XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATE s h $"},
     {"XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "XREADGROUP GROUP h b BLOCK 0 STREAMS s >",
      "XREAD BLOCK 0 STREAMS s 0"},
     {"XADD s 1-1 a 1", "XINFO GROUPS s"}},
    {"destroyed_group_ends_the_wait",
     {"XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATE s h $"},
     {"XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "XREADGROUP GROUP h b BLOCK 0 STREAMS s >"},
     {"XGROUP DESTROY s g"}},
    {"deleted_stream_ends_the_wait",
     {"XGROUP CREATE s g $ MKSTREAM"},
     {"XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "XREAD BLOCK 0 STREAMS s $"},
     {"DEL s"}},
    {"overwritten_stream_ends_the_wait",
     {"XGROUP CREATE s g $ MKSTREAM"},
     {"XREADGROUP GROUP g a BLOCK 0 STREAMS s >"},
     {"SET s x"}},
    {"flushed_stream_ends_the_wait",
     {"XGROUP CREATE s g $ MKSTREAM"},
     {"XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "BLPOP l 0"},
     {"FLUSHDB"}},
    {"renamed_stream_ends_the_wait",
     {"XGROUP CREATE s g $ MKSTREAM"},
     {"XREADGROUP GROUP g a BLOCK 0 STREAMS s >"},
     {"RENAME s t"}},
    {"group_set_back_serves_with_the_next_entry",
     {"XADD s 1-1 a 1", "XGROUP CREATE s g $"},
     {"XREADGROUP GROUP g a BLOCK 0 STREAMS s >"},
     {"XGROUP SETID s g 0", "XADD s 2-1 a 1"}},
};

class Scenes : public ::testing::TestWithParam<std::tuple<Scene, const char*>> {};

TEST_P(Scenes, are_as_with_redis) {
  const auto& [scene, protocol] = GetParam();
  RunningServer ours;
  EXPECT_EQ(play(ours.path(), scene, protocol), play(redis().path(), scene, protocol));
}

INSTANTIATE_TEST_SUITE_P(OfStreams, Scenes,
                         ::testing::Combine(::testing::ValuesIn(scenes), ::testing::Values("2", "3")),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param).name) + "_resp" +
                                  std::get<1>(instance.param);
                         });

// Redis 7.0 answers that there is nothing; its successors answer as this server does.
TEST(OracleStreams, wake_nobody_for_an_entry_that_is_gone_again) {
  RunningServer server;
  const Scene scene{"",
                    {"XADD s 1-1 a 1"},
                    {"XREAD BLOCK 0 STREAMS s 1-1"},
                    {"MULTI", "XADD s 2-1 a 1", "XDEL s 2-1", "EXEC", "XADD s 3-1 a 1"}};
  EXPECT_EQ(play(server.path(), scene, "2").back(),
            "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n3-1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n");
}

// Random commands on three streams and three groups, many of them valid.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  std::vector<std::string> next() {
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        return add();
      case 6:
        return {"XDEL", key(), id(), id()};
      case 7:
        return with({"XTRIM", key()}, trim());
      case 8:
        return maybe_count({below(2) == 0 ? "XRANGE" : "XREVRANGE", key(), bound(), bound()});
      case 9:
        return with(maybe_count({"XREAD"}), {"STREAMS", key(), key(), id(), id()});
      case 10:
      case 11:
      case 12:
        return with(maybe_count(below(3) == 0 ? Words{"XREADGROUP", "GROUP", group(), consumer(), "NOACK"}
                                              : Words{"XREADGROUP", "GROUP", group(), consumer()}),
                    {"STREAMS", key(), below(4) == 0 ? id() : ">"});
      case 13:
        return {"XACK", key(), group(), id(), id(), id()};
      case 14:
        return with({"XCLAIM", key(), group(), consumer(), "0", id(), id()}, claim());
      case 15:
        return with(maybe_count({"XAUTOCLAIM", key(), group(), consumer(), "0", bound()}),
                    below(2) == 0 ? Words{"JUSTID"} : Words{});
      case 16:
        return below(2) == 0 ? Words{"XPENDING", key(), group()}
                             : Words{"XPENDING", key(), group(), "IDLE", "100000000", "-", "+", "10"};
      case 17:
        return manage_groups();
      case 18:
        return below(2) == 0 ? Words{"XINFO", "STREAM", key()} : Words{"XINFO", "GROUPS", key()};
      default:
        return below(5) == 0 ? Words{"XSETID", key(), id(), "ENTRIESADDED", number(50), "MAXDELETEDID", id()}
                             : Words{"XLEN", key()};
    }
  }

 private:
  using Words = std::vector<std::string>;

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::string number(std::uint64_t end) { return std::to_string(below(end)); }
  std::string key() { return std::string(1, static_cast<char>('s' + below(3))); }
  std::string group() { return std::string(1, static_cast<char>('g' + below(2))); }
  std::string consumer() { return std::string(1, static_cast<char>('a' + below(3))); }
  std::string id() { return number(60) + "-" + number(3); }
  std::string bound() {
    static constexpr const char* edges[] = {"-", "+", "(5", "5", "("};
    return below(2) == 0 ? edges[below(5)] : id();
  }
  static Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Words maybe_count(Words words) {
    return below(2) == 0 ? words : with(std::move(words), {"COUNT", number(4)});
  }
  Words trim() {
    Words words{below(2) == 0 ? "MAXLEN" : "MINID"};
    if (below(2) == 0) words.emplace_back(below(2) == 0 ? "~" : "=");
    words.push_back(number(60));
    if (below(5) == 0) words = with(words, {"LIMIT", number(10)});
    return words;
  }
  Words add() {
    Words words{"XADD", key()};
    if (below(10) == 0) words = with(words, trim());
    words.push_back(below(3) == 0 ? id() : std::to_string(next_ms_ += below(2)) + "-*");
    for (std::uint64_t i = 0, n = 1 + below(2); i < n; ++i) {
      words = with(words,
                   {below(3) == 0 ? "b" : "a", below(2) == 0 ? number(100000) : std::string(below(90), 'x')});
    }
    return words;
  }
  Words claim() {
    Words words;
    if (below(2) == 0) words.emplace_back("FORCE");
    if (below(2) == 0) words.emplace_back("JUSTID");
    if (below(3) == 0) words = with(words, {"RETRYCOUNT", number(5)});
    if (below(3) == 0) words = with(words, {"LASTID", id()});
    return words;
  }
  Words manage_groups() {
    switch (below(8)) {
      case 0:
        return {"XGROUP", "DESTROY", key(), group()};
      case 1:
        return {"XGROUP", "DELCONSUMER", key(), group(), consumer()};
      case 2:
        return {"XGROUP", "CREATECONSUMER", key(), group(), consumer()};
      case 3:
        return {"XGROUP", "SETID", key(), group(), id(), "ENTRIESREAD", number(20)};
      case 4:
        return {"XGROUP", "SETID", key(), group(), below(2) == 0 ? "$" : id()};
      default:
        return {"XGROUP", "CREATE", key(), group(), below(2) == 0 ? "0" : "$", "MKSTREAM"};
    }
  }

  std::mt19937_64 random_;
  std::uint64_t next_ms_ = 1;
};

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line.append(word.empty() ? "''" : word).append(" ");
  return line;
}

TEST(OracleStreams, answer_commands_by_chance_as_redis_does) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RunningServer server;
    WireClient ours = server.connect();
    WireClient theirs = WireClient::unix_socket(redis().path());
    theirs.call({"FLUSHALL"});
    for (WireClient* client : {&ours, &theirs}) {
      client->call({"HELLO", seed % 2 == 0 ? "3" : "2"});
      // Nodes of every size, so that their boundaries are reached.
      client->call({"CONFIG", "SET", "stream-node-max-entries", std::to_string(seed % 5)});
      client->call({"CONFIG", "SET", "stream-node-max-bytes", seed % 3 == 0 ? "200" : "4096"});
    }
    Generator generator(seed);
    std::string last;
    for (int i = 0; i < 1000; ++i) {
      const std::vector<std::string> words = generator.next();
      last = joined(words);
      ASSERT_EQ(without_group_counts(ours.call(words)), without_group_counts(theirs.call(words)))
          << "seed " << seed << ", command " << i << ": " << last;
    }
  }
}

}  // namespace
}  // namespace weir::kv::testing
