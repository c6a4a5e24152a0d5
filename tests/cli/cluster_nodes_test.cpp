// How weir-benchmark --cluster reads a cluster: its nodes, tags for their slots, redirected replies.
#include "cli/benchmark/cluster_nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/benchmark/open_loop.hpp"
#include "cli/benchmark/request_ring.hpp"
#include "cli/client/cluster_slots.hpp"
#include "cli/client/reply_count.hpp"
#include "cluster/key_slot.hpp"

namespace weir::benchmark {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

client::Result<std::vector<cluster::SlotRange>> slots_in(std::string_view reply) {
  client::ReplyParser parser;
  if (auto fed = parser.feed(bytes_of(reply)); !fed) return std::unexpected(fed.error());
  return client::read_cluster_slots(*parser.next(), "asked");
}

TEST(ClusterSlots, name_the_primary_of_each_range) {
  const auto ranges = slots_in(
      "*3\r\n"
      "*4\r\n:0\r\n:5460\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$1\r\na\r\n*0\r\n*3\r\n$0\r\n\r\n:7003\r\n$"
      "1\r\nd\r\n"
      "*3\r\n:5461\r\n:10922\r\n*3\r\n$-1\r\n:7001\r\n$1\r\nb\r\n"
      "*3\r\n:10923\r\n:16383\r\n*2\r\n$1\r\n?\r\n:7002\r\n");
  ASSERT_TRUE(ranges) << ranges.error().what;
  ASSERT_EQ(ranges->size(), 2u) << "of one the node does not know the address";
  EXPECT_EQ((*ranges)[0].last, 5460);
  EXPECT_EQ((*ranges)[0].primary, (cluster::NodeAddress{"127.0.0.1", 7000}));
  EXPECT_EQ((*ranges)[1].primary, (cluster::NodeAddress{"asked", 7001}));
}

TEST(ClusterSlots, that_make_no_sense_are_refused) {
  for (const auto* reply :
       {"+OK\r\n", "*-1\r\n", "*1\r\n+x\r\n", "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$1\r\na\r\n:65536\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$2\r\n\r\n\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:4\r\n"})
    EXPECT_FALSE(slots_in(reply)) << reply;
  EXPECT_THAT(slots_in("-ERR This instance has cluster support disabled\r\n").error().what,
              HasSubstr("disabled"));
}

TEST(ClusterNodes, have_tags_of_their_own_slots) {
  const cluster::SlotRange ranges[] = {
      {0, 9999, {"b", 1}}, {10000, 10000, {"a", 2}}, {10001, 16383, {"b", 1}}};
  client::Endpoint asked;
  asked.transport = client::Transport::tls;
  const auto nodes = nodes_of(ranges, asked);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].endpoint.host, "a");
  EXPECT_EQ(nodes[0].endpoint.port, 2);
  EXPECT_EQ(nodes[0].endpoint.transport, client::Transport::tls);
  ASSERT_EQ(nodes[0].tags.size(), 1u);
  EXPECT_EQ(cluster::key_slot("key:" + nodes[0].tags[0] + ":000000000007"), 10000);
  std::set<int> slots;
  for (const auto& tag : nodes[1].tags) slots.insert(cluster::key_slot(tag));
  EXPECT_EQ(slots.size(), nodes[1].tags.size()) << "each of another slot";
  EXPECT_FALSE(slots.contains(10000));
  EXPECT_GT(*slots.rbegin(), 10001) << "spread over all of its slots";
}

TEST(ClusterNodes, find_a_word_for_every_slot) {
  std::vector<cluster::SlotRange> ranges;
  for (std::uint16_t slot = 0; slot < cluster::slot_count; ++slot)
    ranges.push_back({slot, slot, {"n", static_cast<std::uint16_t>(slot + 1)}});
  for (const auto& node : nodes_of(ranges, {}))
    EXPECT_EQ(cluster::key_slot(node.tags.at(0)), node.endpoint.port - 1);
}

TEST(RequestRing, gives_each_request_another_tag_in_turn) {
  const std::string tags[] = {"{one}", "{two}", "{six}"};
  const auto set = standard_workloads(std::vector<std::string>{"mset"}, 3, {.tagged = true});
  const RequestRing ring(set->front(), 2, 1, tags);
  ASSERT_EQ(ring.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto bytes = ring.bytes(i, 1);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_THAT(text, HasSubstr("$22\r\nkey:" + tags[i] + ":000000000000\r\n"));
    for (const auto& other : tags) EXPECT_EQ(text.find(other) != std::string::npos, other == tags[i]);
  }
}

TEST(ReplyCounter, tells_redirections_from_errors_where_they_are_followed) {
  const std::string_view replies =
      "+OK\r\n-MOVED 1 a:1\r\n-ASK 2 b:2\r\n*2\r\n-MOVED 3 c:3\r\n:1\r\n-ERR no\r\n";
  using Redirects = client::ReplyCounter::Redirects;
  client::ReplyCounter follows(Redirects::are_counted), does_not;
  EXPECT_EQ(*follows.count(bytes_of(replies)), 5u);
  EXPECT_EQ(*does_not.count(bytes_of(replies)), 5u);
  const auto redirects = follows.take_redirects();
  EXPECT_EQ(redirects.moved, 1u) << "what lies within a reply is none";
  EXPECT_EQ(redirects.asked, 1u);
  EXPECT_EQ(follows.errors(), 1u);
  EXPECT_EQ(follows.first_error(), "ERR no");
  EXPECT_EQ(does_not.errors(), 3u);
  EXPECT_EQ(does_not.first_error(), "MOVED 1 a:1");
}

TEST(OpenLoop, sends_a_request_that_was_led_away_again_with_the_time_it_was_due) {
  constexpr OpenLoop::Time start{1h};
  OpenLoop loop(start, OpenLoop::Time::max(), 1000, 2);
  loop.take(start);
  loop.give_back(loop.take(start + 1ms));
  EXPECT_FALSE(loop.all_taken());
  EXPECT_EQ(loop.due(start + 5ms), 1u);
  EXPECT_EQ(loop.take(start + 5ms), start + 1ms);
  EXPECT_TRUE(loop.all_taken());
  loop.give_back(start + 1ms);
  LatencyHistogram latency;
  EXPECT_EQ(loop.abandon(start + 9ms, latency), 1u);
  EXPECT_EQ(latency.max_ns(), 8'000'000u);
}

}  // namespace
}  // namespace weir::benchmark
