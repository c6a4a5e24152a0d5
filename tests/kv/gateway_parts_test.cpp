// The parts of the gateway that need no sockets: routes of requests, the nodes' replies,
// and the order of replies.
#include <gtest/gtest.h>

#include <list>

#include "cluster/key_slot.hpp"
#include "kv/command/key_specs.hpp"
#include "kv/gateway/lane.hpp"
#include "kv/gateway/routing.hpp"
#include "kv/gateway/topology.hpp"
#include "kv/gateway/unfinished_replies.hpp"
#include "kv/resp/reply_frame.hpp"

namespace weir::kv::cluster {
namespace {

using weir::cluster::key_slot;
using Where = Route::Where;
using Needs = Route::Needs;

Route route_of(const std::vector<std::string>& words) {
  static const Routing routing;
  std::vector<Argument> arguments;
  for (const std::string& word : words) arguments.push_back({word, nullptr});
  return routing.route(find_command(Arguments(arguments)), arguments);
}

TEST(Routing, sends_a_command_where_its_keys_are) {
  const struct {
    std::vector<std::string> words;
    Where where;
    std::string key = {};
    Needs needs = Needs::nothing;
  } rows[] = {
      {{"GET", "foo"}, Where::slot, "foo"},
      {{"set", "foo", "bar", "EX", "5"}, Where::slot, "foo"},
      {{"MSET", "{a}1", "x", "{a}2", "y"}, Where::slot, "a"},
      {{"MSET", "a", "x", "b", "y"}, Where::cross_slot},
      {{"DEL", "a", "b"}, Where::cross_slot},
      {{"DEL", "{t}a", "{t}b", "{t}c"}, Where::slot, "t"},
      {{"RENAME", "a", "b"}, Where::cross_slot},
      {{"RENAME", "{a}", "{a}2"}, Where::slot, "a"},
      {{"EVAL", "return 1", "2", "{k}1", "{k}2", "v"}, Where::slot, "k"},
      {{"EVAL", "return 1", "2", "a", "b"}, Where::cross_slot},
      {{"EVAL", "return 1", "0"}, Where::any_node},
      {{"XREAD", "COUNT", "1", "STREAMS", "s", "0"}, Where::slot, "s"},
      {{"XREAD", "BLOCK", "0", "STREAMS", "s", "0"}, Where::slot, "s", Needs::own_link_to_wait},
      {{"XREAD", "STREAMS", "BLOCK", "0"}, Where::slot, "BLOCK"},
      {{"XREADGROUP", "GROUP", "STREAMS", "c", "BLOCK", "0", "STREAMS", "s", ">"},
       Where::slot,
       "s",
       Needs::own_link_to_wait},
      {{"XREADGROUP", "NOACK", "GROUP", "g", "STREAMS", "STREAMS", "s", ">"}, Where::slot, "s"},
      {{"XREADGROUP", "GROUP", "g", "BLOCK", "STREAMS", "s", ">"}, Where::slot, "s"},
      {{"XREAD", "NOSUCH", "STREAMS", "s", "0"}, Where::here},
      {{"OBJECT", "ENCODING", "o"}, Where::slot, "o"},
      {{"ZUNION", "2", "{z}1", "{z}2"}, Where::slot, "z"},
      {{"SORT", "{l}", "STORE", "{l}2"}, Where::slot, "l"},
      {{"SORT", "l", "STORE", "m"}, Where::cross_slot},
      {{"SORT", "{l}", "STORE", "GET", "STORE", "{l}2"}, Where::slot, "l"},
      {{"ZUNION", "x", "{z}1", "{z}2"}, Where::here},
      {{"SPUBLISH", "ch", "m"}, Where::slot, "ch"},
      {{"PUBLISH", "ch", "m"}, Where::any_node},
      {{"BLPOP", "l", "0"}, Where::slot, "l", Needs::own_link_to_wait},
      {{"BLPOP", "l", "m", "0"}, Where::cross_slot},
      {{"WAIT", "1", "0"}, Where::written_node, "", Needs::own_link_to_wait},
      {{"KEYS", "*"}, Where::all_nodes},
      {{"RANDOMKEY"}, Where::all_nodes},
      {{"SCAN", "0"}, Where::scanned_node},
      {{"SCAN", "x"}, Where::here},
      {{"FUNCTION", "LOAD", "#!lua name=f"}, Where::all_nodes},
      {{"FUNCTION", "LIST"}, Where::any_node},
      {{"FUNCTION", "KILL"}, Where::refused},
      {{"PUBSUB", "CHANNELS"}, Where::here},
      {{"DBSIZE"}, Where::all_nodes},
      {{"FLUSHALL"}, Where::all_nodes},
      {{"SCRIPT", "LOAD", "return 1"}, Where::all_nodes},
      {{"SCRIPT", "KILL"}, Where::refused},
      {{"SAVE"}, Where::refused},
      {{"SHUTDOWN", "SAVE"}, Where::refused},
      {{"SHUTDOWN", "NOSAVE"}, Where::here},
      {{"CONFIG", "SET", "appendonly", "yes"}, Where::refused},
      {{"CONFIG", "GET", "appendonly"}, Where::here},
      {{"WATCH", "k"}, Where::slot, "k", Needs::own_link_for_watch},
      {{"WATCH", "k", "l"}, Where::cross_slot},
      {{"UNWATCH"}, Where::here},
      {{"MULTI"}, Where::here},
      {{"EXEC"}, Where::here},
      {{"SUBSCRIBE", "ch"}, Where::any_node, {}, Needs::subscription},
      {{"PSUBSCRIBE", "c*"}, Where::any_node, {}, Needs::subscription},
      {{"SSUBSCRIBE", "ch"}, Where::slot, "ch", Needs::subscription},
      {{"SSUBSCRIBE", "a", "b"}, Where::cross_slot},
      {{"UNSUBSCRIBE"}, Where::here},
      {{"CLIENT", "TRACKING", "ON"}, Where::refused},
      {{"CLIENT", "ID"}, Where::here},
      {{"PING"}, Where::here},
      {{"HELLO", "3"}, Where::here},
      {{"COMMAND", "COUNT"}, Where::here},
      {{"INFO"}, Where::here},
      {{"GET"}, Where::here},
      {{"GET", "a", "b"}, Where::here},
      {{"NOSUCH", "a"}, Where::here},
  };
  for (const auto& row : rows) {
    const Route route = route_of(row.words);
    EXPECT_EQ(route.where, row.where) << row.words[0] << ' ' << row.words.back();
    if (row.where == Where::slot) {
      EXPECT_EQ(route.slot, key_slot(row.key)) << row.words[0];
    }
    if (row.where == Where::slot || row.where == Where::any_node) {
      EXPECT_EQ(route.needs, row.needs) << row.words[0];
    }
    EXPECT_EQ(route.why.empty(), row.where != Where::refused) << row.words[0];
  }
}

// Nothing that the gateway answers itself may concern data, because it has none.
TEST(Routing, answers_nothing_by_itself_that_changes_data) {
  const Routing routing;
  for (const Command* command : all_commands()) {
    std::vector<const Command*> all{command};
    for (const Command& sub : command->subcommands) all.push_back(&sub);
    for (const Command* one : all) {
      if (one->run == nullptr || !one->has(flag::write)) continue;
      const std::size_t count = static_cast<std::size_t>(std::abs(one->arity));
      const std::vector<Argument> words(count, Argument{"1", nullptr});
      if (!keys_in(*one, words)) continue;  // it refuses these words
      EXPECT_NE(routing.route(one, words).where, Where::here) << one->full_name();
    }
  }
}

TEST(Topology, is_what_CLUSTER_SLOTS_says) {
  const std::string reply =
      "*3\r\n"
      "*4\r\n:0\r\n:5460\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$1\r\na\r\n*0\r\n"
      "*3\r\n$0\r\n\r\n:7003\r\n$1\r\nd\r\n"
      "*3\r\n:5461\r\n:10922\r\n*4\r\n$-1\r\n:7001\r\n$1\r\nb\r\n*2\r\n$8\r\nhostname\r\n$1\r\nh\r\n"
      "*3\r\n:10923\r\n:16383\r\n*2\r\n$1\r\n?\r\n:7002\r\n";
  const auto topology = read_topology(reply, {"seed", 7009});
  ASSERT_TRUE(topology) << topology.error();
  ASSERT_EQ(topology->ranges.size(), 2u) << "of one the node does not know the address";
  EXPECT_EQ(topology->ranges[0].last, 5460);
  EXPECT_EQ(topology->ranges[0].primary, (NodeAddress{"127.0.0.1", 7000}));
  EXPECT_EQ(topology->ranges[1].first, 5461);
  EXPECT_EQ(topology->ranges[1].primary, (NodeAddress{"seed", 7001}));
  ASSERT_EQ(topology->replicas.size(), 1u);
  EXPECT_EQ(topology->replicas[0], (NodeAddress{"seed", 7003}));
}

TEST(Topology, refuses_what_makes_no_sense) {
  for (std::string_view reply :
       {"+OK\r\n", "*-1\r\n", "*1\r\n+x\r\n", "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$1\r\na\r\n:65536\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$2\r\n\r\n\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:4\r\n*1\r\n$1\r\na\r\n",
        "*20000\r\n"})
    EXPECT_FALSE(read_topology(reply, {"seed", 1})) << reply;
  EXPECT_EQ(read_topology("-NOAUTH Authentication required.\r\n", {"seed", 1}).error(),
            "it answers CLUSTER SLOTS: NOAUTH Authentication required.");
}

TEST(ReplyFrame, ends_where_the_reply_does_however_it_arrives) {
  for (std::string_view reply : {"+OK\r\n",
                                 "-ERR x\r\n",
                                 ":1\r\n",
                                 "$3\r\na\r\n\r\n",
                                 "$0\r\n\r\n",
                                 "$-1\r\n",
                                 "*-1\r\n",
                                 "*0\r\n",
                                 "_\r\n",
                                 "#t\r\n",
                                 ",1.5\r\n",
                                 "(12\r\n",
                                 "=5\r\ntxt:a\r\n",
                                 "!3\r\nERR\r\n",
                                 "*2\r\n*1\r\n:1\r\n$1\r\na\r\n",
                                 "%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n",
                                 "~1\r\n+a\r\n",
                                 ">2\r\n+a\r\n+b\r\n",
                                 "|1\r\n+a\r\n+b\r\n:1\r\n",
                                 "*1\r\n|1\r\n+a\r\n+b\r\n:1\r\n"}) {
    const std::string more = std::string(reply) + "+next\r\n";
    ReplyFrame frame;
    EXPECT_EQ(frame.scan(more), ReplyFrame::Status::whole) << reply;
    EXPECT_EQ(frame.size(), reply.size()) << reply;
    frame.next();
    for (std::size_t i = 0; i < reply.size(); ++i)
      ASSERT_EQ(frame.scan(reply.substr(0, i)), ReplyFrame::Status::incomplete) << reply << " up to " << i;
    EXPECT_EQ(frame.scan(more), ReplyFrame::Status::whole) << reply;
    EXPECT_EQ(frame.size(), reply.size()) << reply;
  }
}

TEST(ReplyFrame, refuses_what_is_no_reply) {
  for (std::string_view bytes :
       {"x\r\n", "+a\n", "\n", "$x\r\n", "$-2\r\n", "$1\r\nab\r\n", "*-2\r\n", "$536870913\r\n",
        "*4294967297\r\n", "*4294967296\r\n*4294967296\r\n", "$?\r\n"}) {
    ReplyFrame frame;
    EXPECT_EQ(frame.scan(bytes), ReplyFrame::Status::failed) << bytes;
  }
  ReplyFrame frame;
  EXPECT_EQ(frame.scan(std::string(ReplyFrame::longest_line + 1, '+')), ReplyFrame::Status::failed);
}

struct Left {
  std::string text;
  Lane lane{nullptr, [this](std::string_view reply) { text += reply; }};
};

TEST(Lane, lets_replies_leave_in_the_order_of_the_requests) {
  Left left;
  Lane& lane = left.lane;
  const std::uint64_t first = lane.enter(false);
  const std::uint64_t second = lane.enter(false);
  const std::uint64_t muted = lane.enter(true);
  const std::uint64_t last = lane.enter(false);
  lane.finish(last, "d");
  lane.finish(second, "b");
  EXPECT_EQ(left.text, "");
  lane.finish(first, "a");
  EXPECT_EQ(left.text, "ab");
  lane.finish(muted, "c");
  EXPECT_EQ(left.text, "abd");
  EXPECT_TRUE(lane.idle());
}

TEST(Lane, takes_fewer_requests_while_replies_are_large) {
  Left left;
  Lane& lane = left.lane;
  EXPECT_EQ(lane.allowed(), Lane::most_places);
  lane.finish(lane.enter(false), std::string(Lane::most_bytes / 4, 'x'));
  EXPECT_EQ(lane.allowed(), 4u);
  lane.finish(lane.enter(false), std::string(Lane::most_bytes * 2, 'x'));
  EXPECT_EQ(lane.allowed(), 1u);
  for (int i = 0; i < 500; ++i) lane.finish(lane.enter(false), "small");
  EXPECT_EQ(lane.allowed(), Lane::most_places);
}

TEST(Lane, drops_what_comes_for_a_client_that_is_gone) {
  Left left;
  const std::uint64_t first = left.lane.enter(false);
  left.lane.abandon();
  left.lane.finish(first, "a");
  EXPECT_EQ(left.text, "");
}

// However many links begin replies that do not end, those of the node that has the most end.
TEST(UnfinishedReplies, end_the_node_that_has_the_most) {
  using Part = UnfinishedReplies::Part;
  const auto all = std::make_shared<UnfinishedReplies>(1000);
  std::vector<int> ended;
  std::list<Part> links;
  const auto link = [&](const char* node) -> Part& {
    return links.emplace_back(all, node,
                              [&ended, number = static_cast<int>(links.size())] { ended.push_back(number); });
  };
  Part& honest = link("honest:1");
  honest.hold(350);
  for (const std::size_t bytes : {100U, 250U, 240U}) link("greedy:1").hold(bytes);
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(all->held(), 940U);
  link("other:1").hold(70);
  EXPECT_EQ(ended, (std::vector{2}));  // not the honest one, which holds more by itself
  EXPECT_EQ(all->held(), 760U);
  honest.hold(600);
  EXPECT_EQ(ended, (std::vector{2, 0}));
  links.clear();
  EXPECT_EQ(all->held(), 0U);
}

}  // namespace
}  // namespace weir::kv::cluster
