// Listpacks, and streams in them, compared with simple models.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "kv/store/listpack.hpp"
#include "kv/store/stream.hpp"

namespace weir::kv {
namespace {

using Order = StreamCursor::Order;
using Words = std::vector<std::string>;

std::string text_at(listpack::Place at) {
  IntText room;
  return std::string(listpack::text(at, room));
}

Words all_forward(const Listpack& pack) {
  Words found;
  for (listpack::Place at = pack.begin(); at != pack.end(); at = listpack::next(at))
    found.push_back(text_at(at));
  return found;
}

Words all_backward(const Listpack& pack) {
  Words found;
  for (listpack::Place at = pack.end(); at != pack.begin();) {
    at = listpack::previous(at);
    found.insert(found.begin(), text_at(at));
  }
  return found;
}

TEST(Listpacks, give_back_each_kind_of_element_from_both_ends) {
  const Words words{"",
                    "a",
                    std::string(63, 'b'),
                    std::string(64, 'c'),
                    std::string(4095, 'd'),
                    std::string(4096, 'e'),
                    std::string(20000, 'f'),
                    std::string(3000000, 'g'),
                    "0",
                    "127",
                    "128",
                    "-1",
                    "-4096",
                    "4095",
                    "4096",
                    "-32768",
                    "32767",
                    "32768",
                    "-8388608",
                    "8388607",
                    "8388608",
                    "-2147483648",
                    "2147483647",
                    "2147483648",
                    "-9223372036854775808",
                    "9223372036854775807",
                    "9223372036854775808",
                    "007",
                    "-0",
                    "+1",
                    std::string("\0\xff", 2)};
  Listpack pack(0);
  for (const std::string& word : words) pack.append(word);
  EXPECT_TRUE(listpack::check(pack.view()));
  EXPECT_EQ(all_forward(pack), words);
  EXPECT_EQ(all_backward(pack), words);
}

// As redis-server 7.0 writes them: what is in an RDB file of it.
TEST(Listpacks, are_written_as_redis_writes_them) {
  Listpack pack(0);
  pack.append("a");
  pack.append("1");
  pack.append("1000");
  pack.append(std::string(64, 'x'));
  const std::string expected = std::string("\x52\0\0\0\x04\0\x81\x61\x02\x01\x01\xc3\xe8\x02\xe0\x40", 16) +
                               std::string(64, 'x') + std::string("\x42\xff", 2);
  EXPECT_EQ(pack.view(), expected);
}

TEST(Listpacks, keep_their_other_elements_when_an_integer_gets_longer_or_shorter) {
  Listpack pack(0);
  for (const char* word : {"first", "5", "last"}) pack.append(word);
  for (const std::int64_t value : {127, 128, 5000, 1 << 20, -1, 3}) {
    const listpack::Place at = pack.replace(listpack::next(pack.begin()), value);
    EXPECT_EQ(listpack::integer(at), value);
    EXPECT_EQ(all_backward(pack), (Words{"first", std::to_string(value), "last"}));
    EXPECT_TRUE(listpack::check(pack.view()));
  }
}

TEST(Listpacks, are_refused_when_a_byte_of_their_frame_is_wrong) {
  Listpack pack(0);
  for (const char* word : {"some text", "12345", "7"}) pack.append(word);
  const std::string good(pack.view());
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(listpack::check(good.substr(0, cut))) << cut;
  EXPECT_FALSE(listpack::check(good + '\xff'));
  for (const std::size_t framing : {std::size_t{0}, std::size_t{4}, std::size_t{6}, good.size() - 1}) {
    std::string bad = good;
    bad[framing] = static_cast<char>(bad[framing] ^ 0x08);
    EXPECT_FALSE(listpack::check(bad)) << framing;
  }
}

std::vector<std::string_view> views(const Words& words) { return {words.begin(), words.end()}; }

using Model = std::map<StreamId, Words>;

Words words_of(const StreamCursor& cursor) {
  Words words;
  cursor.for_each_pair([&](std::string_view name, std::string_view value) {
    words.emplace_back(name);
    words.emplace_back(value);
  });
  return words;
}

Model contents(const Stream& stream, StreamId first, StreamId last, Order order) {
  Model found;
  StreamCursor cursor(stream, first, last, order);
  std::optional<StreamId> before;
  while (cursor.next()) {
    const bool in_order =
        !before || (order == Order::forward ? *before < cursor.id() : *before > cursor.id());
    EXPECT_TRUE(in_order);
    before = cursor.id();
    found.emplace(cursor.id(), words_of(cursor));
  }
  return found;
}

Model between(const Model& model, StreamId first, StreamId last) {
  if (first > last) return {};
  return {model.lower_bound(first), model.upper_bound(last)};
}

Words random_words(std::mt19937_64& random) {
  if (random() % 3 != 0) return {"temperature", std::to_string(random() % 1000), "place", "here"};
  Words words;
  for (std::size_t i = 0, n = 2 * (1 + random() % 3); i < n; ++i) {
    words.push_back(std::string(random() % 40, static_cast<char>('a' + random() % 26)));
  }
  return words;
}

void expect_same(const Stream& stream, const Model& model, std::mt19937_64& random) {
  ASSERT_EQ(stream.size(), model.size());
  ASSERT_EQ(stream.first_id(), model.empty() ? StreamId{} : model.begin()->first);
  ASSERT_EQ(stream.newest(), model.empty() ? StreamId{} : model.rbegin()->first);
  const StreamId first{random() % 500, random() % 3};
  const StreamId last{random() % 500, random() % 3};
  for (const auto& [from, to] : {std::pair{StreamId{}, StreamId::highest()}, std::pair{first, last}}) {
    const Model expected = between(model, from, to);
    ASSERT_EQ(contents(stream, from, to, Order::forward), expected);
    ASSERT_EQ(contents(stream, from, to, Order::backward), expected);
    ASSERT_EQ(stream.count(from, to, 10000), expected.size());
    ASSERT_EQ(stream.count(from, to, 7), std::min<std::size_t>(expected.size(), 7));
  }
}

void trim_both(Stream& stream, Model& model, std::mt19937_64& random) {
  StreamTrim trim;
  if (random() % 2 == 0) {
    trim.down = StreamTrim::Down::to_length;
    trim.length = random() % (model.size() + 2);
  } else {
    trim.down = StreamTrim::Down::to_id;
    trim.id = {random() % 500, 0};
  }
  trim.whole_nodes = random() % 2 == 0;
  trim.limit = trim.whole_nodes ? random() % 50 : 0;
  const std::size_t taken = stream.trim(trim);
  std::size_t should_go = 0;
  if (trim.down == StreamTrim::Down::to_length) {
    should_go = model.size() - std::min<std::size_t>(model.size(), trim.length);
  } else {
    should_go = static_cast<std::size_t>(std::distance(model.begin(), model.lower_bound(trim.id)));
  }
  if (trim.whole_nodes) {
    ASSERT_LE(taken, should_go);
  } else {
    ASSERT_EQ(taken, should_go);
  }
  model.erase(model.begin(), std::next(model.begin(), static_cast<std::ptrdiff_t>(taken)));
}

TEST(Streams, hold_what_a_map_holds) {
  constexpr std::uint64_t seed = 20251125;
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const StreamNodeLimits limits : {StreamNodeLimits{4096, 100}, {200, 0}, {0, 4}, {1, 1}}) {
    Stream stream;
    Model model;
    for (int i = 0; i < 1500; ++i) {
      if (random() % 4 != 0 && stream.last_id.ms < 480) {
        const StreamId id{stream.last_id.ms + random() % 2, stream.last_id.seq + 1};
        const Words words = random_words(random);
        stream.append(id, views(words), limits);
        model.emplace(id, words);
      } else if (random() % 8 == 0) {
        trim_both(stream, model, random);
      } else if (!model.empty()) {
        const StreamId id =
            std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()))->first;
        ASSERT_TRUE(stream.contains(id));
        ASSERT_TRUE(stream.erase(id));
        ASSERT_FALSE(stream.erase(id));
        model.erase(id);
      }
      if (i % 10 == 0) expect_same(stream, model, random);
      if (HasFatalFailure()) FAIL() << "at step " << i;
    }
    const std::unique_ptr<Stream> copy = stream.copy();
    expect_same(*copy, model, random);
  }
}

Stream some_stream(std::size_t entries) {
  Stream stream;
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < entries; ++i) {
    const Words words = random_words(random);
    stream.append({i + 1, i % 3}, views(words), {300, 0});
  }
  stream.erase({2, 1});
  return stream;
}

TEST(Streams, come_back_from_the_bytes_of_their_nodes) {
  const Stream stream = some_stream(60);
  Stream again;
  for (const auto& [base, node] : stream.nodes()) ASSERT_TRUE(again.adopt_node(base, node.bytes()));
  EXPECT_EQ(contents(again, {}, StreamId::highest(), Order::backward),
            contents(stream, {}, StreamId::highest(), Order::forward));
  EXPECT_EQ(again.size(), stream.size());
  EXPECT_EQ(again.first_id(), stream.first_id());
  EXPECT_EQ(again.last_id, stream.last_id);
}

TEST(Streams, refuse_nodes_out_of_order) {
  const Stream stream = some_stream(60);
  const auto& [first, node] = *stream.nodes().begin();
  Stream again;
  ASSERT_TRUE(again.adopt_node(first, node.bytes()));
  EXPECT_FALSE(again.adopt_node(first, node.bytes()));
  const StreamId inside{first.ms + 1, first.seq};
  EXPECT_FALSE(again.adopt_node(inside, node.bytes()));
}

// Whatever is accepted can be walked: each byte of a node is changed to each other value.
TEST(Streams, accept_no_node_that_cannot_be_walked) {
  const Stream stream = some_stream(4);
  const auto& [base, node] = *stream.nodes().begin();
  const std::string good(node.bytes());
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bad = good;
      bad[at] = static_cast<char>(value);
      Stream again;
      if (!again.adopt_node(base, bad)) continue;
      ++accepted;
      const Model found = contents(again, {}, StreamId::highest(), Order::forward);
      ASSERT_EQ(found, contents(again, {}, StreamId::highest(), Order::backward));
      ASSERT_EQ(found.size(), again.size());
    }
  }
  EXPECT_GT(accepted, good.size());  // the node as it is, once for each of its bytes
}

TEST(Streams, are_freed_a_little_at_a_time) {
  Stream stream = some_stream(2000);
  StreamGroup& group = *stream.add_group("g", {}, 0);
  for (const char* name : {"a", "b"}) {
    StreamConsumer& consumer = group.add_consumer(name, 0);
    for (std::uint64_t i = 1; i <= 100; ++i) group.give({i, name[0] == 'a' ? 0u : 1u}, consumer);
  }
  const std::size_t pieces = stream.pieces();
  EXPECT_GT(pieces, 200U);
  std::size_t steps = 0;
  while (stream.free_some(20)) ++steps;
  EXPECT_GE(steps, pieces / 20);
}

TEST(StreamGroups, know_whose_an_entry_is) {
  StreamGroup group({}, 0);
  StreamConsumer& ann = group.add_consumer("ann", 1);
  StreamConsumer& bob = group.add_consumer("bob", 2);
  group.give({1, 0}, ann).deliveries = 3;
  group.give({2, 0}, ann);
  EXPECT_EQ(group.give({1, 0}, bob).deliveries, 3U);
  EXPECT_EQ(ann.pending.size(), 1U);
  EXPECT_EQ(bob.pending.size(), 1U);
  const std::unique_ptr<StreamGroup> copy = group.copy();
  EXPECT_TRUE(group.take_back({2, 0}));
  EXPECT_FALSE(group.take_back({2, 0}));
  group.remove_consumer("bob");
  EXPECT_TRUE(group.pending().empty());
  EXPECT_EQ(copy->find({1, 0})->consumer, copy->find_consumer("bob"));
  EXPECT_EQ(copy->pending().size(), 2U);
}

// What redis-server 7.0 says for streams whose nodes begin with these ids, one entry in each.
TEST(Streams, count_the_nodes_of_a_radix_tree_as_redis_does) {
  const struct {
    std::vector<StreamId> ids;
    std::size_t nodes;
  } rows[] = {
      {{}, 1},
      {{{1, 1}}, 2},
      {{{1, 1}, {1, 2}}, 4},
      {{{1, 1}, {2, 1}}, 6},
      {{{1, 1}, {1, 2}, {1, 3}}, 5},
      {{{1, 1}, {1, 256}}, 6},
      {{{1, 1}, {1, 2}, {1, 256}, {5, 9}}, 11},
  };
  for (const auto& row : rows) {
    Stream stream;
    for (const StreamId id : row.ids) stream.append(id, views({"a", "b"}), {0, 1});
    EXPECT_EQ(stream.radix_tree_nodes(), row.nodes) << row.ids.size();
  }
}

}  // namespace
}  // namespace weir::kv
