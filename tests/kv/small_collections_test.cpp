// Small collections and the forms that they grow into, against simple models with random operations from a
// printed seed; and the memory that they take.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kv/store/hash.hpp"
#include "kv/store/list.hpp"
#include "kv/store/set.hpp"
#include "kv/store/value.hpp"
#include "kv/store/zset.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {
namespace {

constexpr std::uint64_t seed = 20261127;

// Texts that a compact form may take for something else.
const std::vector<std::string>& tricky_texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all{"",
                                 "0",
                                 "-0",
                                 "007",
                                 "+1",
                                 "-1",
                                 " 1",
                                 "1 ",
                                 "1.0",
                                 "1e3",
                                 "127",
                                 "128",
                                 "4095",
                                 "4096",
                                 "-4096",
                                 "-4097",
                                 "32767",
                                 "32768",
                                 "-32768",
                                 "-129",
                                 "-8388608",
                                 "8388607",
                                 "8388608",
                                 "2147483647",
                                 "2147483648",
                                 "-2147483648",
                                 "9223372036854775807",
                                 "-9223372036854775808",
                                 "9223372036854775808",
                                 "18446744073709551615",
                                 "inf",
                                 "nan",
                                 "12345678",
                                 "1234567"};
    all.emplace_back("\0", 1);
    all.emplace_back("\xff\xff");
    all.emplace_back("a\r\nb");
    for (const std::size_t size : {63, 64, 65, 127, 128, 4095, 4096, 5000}) all.emplace_back(size, 'x');
    return all;
  }();
  return texts;
}

class Words {
 public:
  explicit Words(std::uint64_t other) : random_(seed + other) {
    ::testing::Test::RecordProperty("seed", std::to_string(seed + other));
  }

  std::uint64_t any() { return random_(); }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::string text(std::size_t most_bytes) {
    for (;;) {
      std::string one = below(3) == 0   ? tricky_texts()[below(tricky_texts().size())]
                        : below(2) == 0 ? std::to_string(static_cast<int>(below(200)) - 100)
                                        : "word" + std::to_string(below(100));
      if (one.size() <= most_bytes) return one;
    }
  }

 private:
  std::mt19937_64 random_;
};

// How far a collection grows and how it is limited; most of it stays small, or grows now and then.
struct Course {
  const char* name;
  SmallLimits limits;
  std::size_t entries;     // about so many at most
  std::size_t text_bytes;  // of the longest text
};
const std::array courses{
    Course{"stays_small", {512, 64}, 60, 64}, Course{"grows_by_its_entries", {20, 64}, 60, 64},
    Course{"grows_by_a_long_text", {512, 64}, 60, 5000},
    Course{"stays_small_with_long_texts", {512, 5000}, 60, 5000}, Course{"is_never_small", {0, 64}, 60, 64}};

class SmallCollections : public ::testing::TestWithParam<Course> {};
INSTANTIATE_TEST_SUITE_P(Courses, SmallCollections, ::testing::ValuesIn(courses),
                         [](const auto& course) { return std::string(course.param.name); });

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs pairs_of(const Hash& hash) {
  Pairs pairs;
  hash.for_each([&](std::string_view field, std::string_view value) { pairs.emplace_back(field, value); });
  return pairs;
}

void expect_holds(const Hash& hash, const Pairs& model) {
  ASSERT_EQ(hash.size(), model.size());
  for (const auto& [field, value] : model) {
    const auto found = hash.find(field);
    ASSERT_TRUE(found) << field;
    ASSERT_EQ(found->view(), value) << field;
  }
  Pairs all = pairs_of(hash);
  Pairs expected = model;
  if (!hash.small()) {
    std::ranges::sort(all);
    std::ranges::sort(expected);
  }
  ASSERT_EQ(all, expected) << "a small hash keeps the order of arrival";
}

TEST_P(SmallCollections, hash_holds_what_a_row_of_pairs_holds) {
  const auto& [name, limits, entries, text_bytes] = GetParam();
  Words words(1);
  for (int round = 0; round < 30; ++round) {
    Hash hash;
    Pairs model;
    bool small = true;
    for (std::size_t step = 0; step < 4 * entries; ++step) {
      const std::string field = words.text(text_bytes);
      const auto old = std::ranges::find(model, field, &Pairs::value_type::first);
      const bool known = old != model.end();
      if (words.below(4) == 0) {
        ASSERT_EQ(hash.erase(field), known) << field;
        if (known) model.erase(old);
      } else {
        const std::string value = words.text(text_bytes);
        ASSERT_EQ(hash.set(field, std::string_view(value), limits), !known) << field;
        if (known) {
          old->second = value;
        } else {
          model.emplace_back(field, value);
        }
        small = small && model.size() <= limits.entries && field.size() <= limits.bytes &&
                value.size() <= limits.bytes;
      }
      ASSERT_EQ(hash.small(), small);
      ASSERT_EQ(hash.find(field).has_value(),
                std::ranges::find(model, field, &Pairs::value_type::first) != model.end());
    }
    expect_holds(hash, model);
    const Hash copy = hash.copy();
    EXPECT_EQ(copy.small(), hash.small());
    while (!model.empty()) {
      ASSERT_TRUE(hash.erase(model.back().first));
      model.pop_back();
      if (model.size() % 7 == 0) expect_holds(hash, model);
    }
    EXPECT_EQ(copy.size(), pairs_of(copy).size()) << "a copy stays as it was";
  }
}

TEST(SmallHash, is_moved_with_its_value) {
  Hash hash;
  hash.set("field", std::string_view("value"), {512, 64});
  Value value(std::move(hash));
  Value moved(std::move(value));
  EXPECT_EQ(value.type(), Type::string);
  EXPECT_EQ(moved.hash().find("field")->view(), "value");
  moved = Value(Bytes(std::string_view("text")));
  EXPECT_EQ(moved.text().view(), "text");
}

using Ordered = std::vector<std::pair<double, std::string>>;

Ordered walked(const SortedSet& zset, Ranks ranks, Walk walk) {
  Ordered members;
  zset.for_each(ranks, walk, [&](std::string_view member, double score) {
    members.emplace_back(score, member);
    return true;
  });
  return members;
}

// Each in its place, from both ends and by rank, and every number as it was given.
void expect_holds(const SortedSet& zset, const std::map<std::string, double>& scores, Words& words) {
  Ordered order;
  for (const auto& [member, score] : scores) order.emplace_back(score, member);
  std::ranges::sort(order);
  ASSERT_EQ(zset.size(), order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto& [score, member] = order[rank];
    const auto found = zset.find(member);
    ASSERT_TRUE(found) << member;
    ASSERT_EQ(found->score(), score) << member;
    ASSERT_EQ(std::signbit(found->score()), std::signbit(score)) << member;
    ASSERT_EQ(zset.rank(*found), rank) << member;
    ASSERT_EQ(zset.at(rank).member.view(), member);
    ASSERT_EQ(zset.at(rank).score, score);
    const auto before = [&](double other) { return other < score; };
    ASSERT_EQ(zset.count_scores(before),
              static_cast<std::size_t>(std::ranges::count_if(order, before, &Ordered::value_type::first)));
  }
  const std::size_t first = words.below(order.size() + 1);
  const Ranks ranks{first, first + words.below(order.size() + 1 - first)};
  Ordered part(order.begin() + static_cast<std::ptrdiff_t>(ranks.first),
               order.begin() + static_cast<std::ptrdiff_t>(ranks.end));
  ASSERT_EQ(walked(zset, ranks, Walk::forward), part);
  std::ranges::reverse(part);
  ASSERT_EQ(walked(zset, ranks, Walk::backward), part);
}

double some_score(Words& words) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr std::array tricky{0.0,
                                     -0.0,
                                     0.5,
                                     -1.25,
                                     0.1,
                                     1.0 / 3,
                                     1e300,
                                     -1e300,
                                     1e15,
                                     1e19,
                                     9223372036854775808.0,
                                     -9223372036854775808.0,
                                     5e-324,
                                     1.0000000000000002,
                                     1e30,
                                     infinity,
                                     -infinity};
  return words.below(3) == 0 ? tricky[words.below(tricky.size())] : static_cast<double>(words.below(20)) - 10;
}

TEST_P(SmallCollections, sorted_set_holds_what_a_sorted_vector_holds) {
  const auto& [name, limits, entries, text_bytes] = GetParam();
  Words words(2);
  for (int round = 0; round < 10; ++round) {
    SortedSet zset;
    std::map<std::string, double> scores;
    for (std::size_t step = 0; step < 4 * entries; ++step) {
      const std::string member = words.text(text_bytes);
      const auto found = zset.find(member);
      ASSERT_EQ(found.has_value(), scores.contains(member)) << member;
      if (words.below(4) == 0) {
        if (found) zset.erase(*found);
        scores.erase(member);
      } else if (words.below(20) == 0) {
        const std::size_t first = words.below(zset.size() + 1);
        const Ranks ranks{first, first + words.below(std::min<std::size_t>(zset.size() - first, 3) + 1)};
        for (const auto& [score, gone] : walked(zset, ranks, Walk::forward)) scores.erase(gone);
        zset.erase(ranks);
      } else {
        const double score = some_score(words);
        found ? zset.rescore(*found, score) : zset.insert(member, score, limits);
        scores[member] = zset.small() ? score + 0.0 : score;
        if (!zset.small()) continue;
        ASSERT_LE(zset.size(), limits.entries);
        ASSERT_LE(member.size(), limits.bytes);
      }
      if (step % 16 == 0) expect_holds(zset, scores, words);
    }
    expect_holds(zset, scores, words);
    SortedSet copy = zset.copy();
    EXPECT_EQ(copy.small(), zset.small());
    zset.erase(Ranks{0, zset.size()});
    EXPECT_EQ(zset.size(), 0u);
    expect_holds(copy, scores, words);
    copy.make_small_within({512, 5000});
    EXPECT_TRUE(copy.small());
    for (auto& [member, score] : scores) score += 0.0;
    expect_holds(copy, scores, words);
  }
}

TEST(SmallSortedSet, finds_members_between_texts) {
  for (const SmallLimits limits : {SmallLimits{128, 64}, SmallLimits{0, 0}}) {
    SortedSet zset;
    for (const char* member : {"b", "10", "9", "", "a", "aa"}) zset.insert(member, 7, limits);
    EXPECT_EQ(zset.count_members([](std::string_view member) { return member < "aa"; }), 4u);
    EXPECT_EQ(zset.count_members([](std::string_view member) { return member <= "aa"; }), 5u);
    EXPECT_EQ(zset.count_members([](std::string_view) { return true; }), 6u);
  }
}

// The form after `member` has come to what `model` holds with it.
Set::Form form_with(Set::Form form, const std::set<std::string>& model, const std::string& member,
                    SmallLimits limits) {
  using enum Set::Form;
  if (form == table) return table;
  if (form == integers && parse_int(member) && (limits.entries != 0 || model.size() > 1))
    return model.size() <= limits.entries ? integers : table;
  const auto fits = [&](const std::string& text) { return text.size() <= limits.bytes; };
  const bool all_fit = form == integers ? std::ranges::all_of(model, fits) : fits(member);
  return model.size() <= limits.entries && all_fit ? packed : table;
}

// Integers of all widths and what looks like them; with few of them the row lies in the value.
TEST_P(SmallCollections, set_holds_what_a_sorted_set_of_texts_holds) {
  const auto& [name, limits, entries, text_bytes] = GetParam();
  Words words(3);
  for (int round = 0; round < 60; ++round) {
    Set set;
    std::set<std::string> model;
    const bool all_integers = round % 2 == 0;
    const std::uint64_t bits = 4 + words.below(60);
    const SetLimits both{limits.entries, limits};
    Set::Form form = Set::Form::integers;
    for (std::size_t step = 0; step < 4 * entries; ++step) {
      const std::int64_t number = static_cast<std::int64_t>(words.any() << (64 - bits)) >> (64 - bits);
      const std::string member = all_integers ? std::to_string(number) : words.text(text_bytes);
      if (words.below(4) == 0) {
        ASSERT_EQ(set.erase(member), model.erase(member) == 1) << member;
      } else {
        const bool is_new = model.insert(member).second;
        if (is_new) form = form_with(form, model, member, limits);
        ASSERT_EQ(set.insert(member, both), is_new) << member;
      }
      ASSERT_EQ(set.form(), form) << member;
      ASSERT_EQ(set.contains(member), model.contains(member));
    }
    const auto members_of = [](const Set& from) {
      std::vector<std::string> members;
      from.for_each([&](std::string_view member) { return members.emplace_back(member), true; });
      return members;
    };
    std::vector<std::string> expected(model.begin(), model.end());
    std::vector<std::string> members = members_of(set);
    const bool integers_only = form == Set::Form::integers;
    if (integers_only) {
      std::ranges::sort(expected, {}, [](const std::string& member) { return *parse_int(member); });
    } else {
      std::ranges::sort(members);
    }
    ASSERT_EQ(members, expected) << "integers are in their order";
    const Set copy = set.copy();
    for (const std::string& member : model) ASSERT_TRUE(set.erase(member)) << member;
    EXPECT_EQ(set.size(), 0u);
    members = members_of(copy);
    if (!integers_only) std::ranges::sort(members);
    EXPECT_EQ(members, expected) << "a copy stays as it was";
  }
}

std::vector<std::string> elements_of(const List& list, std::size_t first, std::size_t end, Walk walk) {
  std::vector<std::string> elements;
  list.for_each(first, end, walk,
                [&](std::string_view element) { return elements.emplace_back(element), true; });
  return elements;
}

void expect_holds(const List& list, const std::vector<std::string>& model, Words& words) {
  ASSERT_EQ(list.size(), model.size());
  ASSERT_EQ(elements_of(list, 0, list.size(), Walk::forward), model);
  const std::size_t first = words.below(model.size() + 1);
  const std::size_t end = first + words.below(model.size() + 1 - first);
  std::vector<std::string> part(model.begin() + static_cast<std::ptrdiff_t>(first),
                                model.begin() + static_cast<std::ptrdiff_t>(end));
  ASSERT_EQ(elements_of(list, first, end, Walk::forward), part);
  std::ranges::reverse(part);
  ASSERT_EQ(elements_of(list, first, end, Walk::backward), part);
  if (!model.empty()) {
    const std::size_t place = words.below(model.size());
    ASSERT_EQ(list.at(place).view(), model[place]);
  }
}

std::size_t remove_from(std::vector<std::string>& model, const std::string& text, std::size_t most,
                        Walk walk) {
  std::size_t removed = 0;
  const auto goes = [&](const std::string& one) { return removed < most && one == text && ++removed != 0; };
  if (walk == Walk::forward) {
    model.erase(std::remove_if(model.begin(), model.end(), goes), model.end());
  } else {
    model.erase(model.begin(), std::remove_if(model.rbegin(), model.rend(), goes).base());
  }
  return removed;
}

// How long its elements are decides how many nodes a list has.
struct ListCourse {
  const char* name;
  std::size_t steps;
  std::size_t text_bytes;
  std::size_t filler_bytes;
};
class Lists : public ::testing::TestWithParam<ListCourse> {};
INSTANTIATE_TEST_SUITE_P(Courses, Lists,
                         ::testing::Values(ListCourse{"of_one_node", 300, 64, 20},
                                           ListCourse{"of_many_nodes", 3000, 64, 300},
                                           ListCourse{"of_long_elements", 600, 5000, 4000},
                                           ListCourse{"of_elements_that_are_alone", 600, 5000, 12'000}),
                         [](const auto& course) { return std::string(course.param.name); });

TEST_P(Lists, hold_what_a_vector_holds) {
  const auto& [name, steps, text_bytes, filler_bytes] = GetParam();
  Words words(4);
  for (int round = 0; round < 4; ++round) {
    List list;
    std::vector<std::string> model;
    for (std::size_t step = 0; step < steps; ++step) {
      // Now and then it shrinks to nothing.
      const bool grows = step / 200 % 3 != 2;
      const std::string text =
          words.below(3) == 0 ? std::string(1 + words.below(filler_bytes), 'f') : words.text(text_bytes);
      const std::size_t place = words.below(model.size() + 1);
      const auto at = model.begin() + static_cast<std::ptrdiff_t>(place);
      const std::uint64_t what = words.below(grows ? 8 : 12);
      if (what < 2) {
        list.push(End::left, std::string_view(text));
        model.insert(model.begin(), text);
      } else if (what < 5) {
        list.push(End::right, std::string_view(text));
        model.push_back(text);
      } else if (what == 5) {
        list.insert(place, std::string_view(text));
        model.insert(at, text);
      } else if (what == 6 && place < model.size()) {
        list.set(place, std::string_view(text));
        *at = text;
      } else if (what == 7) {
        const std::size_t most = words.below(3);
        const Walk walk = words.below(2) == 0 ? Walk::forward : Walk::backward;
        ASSERT_EQ(list.remove(text, most, walk), remove_from(model, text, most, walk));
      } else if (what == 8) {
        const std::size_t end = place + words.below(std::min<std::size_t>(model.size() - place, 40) + 1);
        list.erase(place, end);
        model.erase(at, model.begin() + static_cast<std::ptrdiff_t>(end));
      } else if (!model.empty()) {
        const End end = what % 2 == 0 ? End::left : End::right;
        ASSERT_EQ(list.at(end).view(), end == End::left ? model.front() : model.back());
        list.pop(end);
        model.erase(end == End::left ? model.begin() : model.end() - 1);
      }
      ASSERT_EQ(list.size(), model.size());
      if (step % 20 == 0) expect_holds(list, model, words);
    }
    const List copy = list.copy();
    list.erase(0, list.size());
    EXPECT_TRUE(list.empty());
    expect_holds(copy, model, words);
  }
}

TEST(LongList, keeps_the_room_that_queues_leave_in_bounds) {
  for (const End in : {End::left, End::right}) {
    const End out = in == End::left ? End::right : End::left;
    List list;
    std::size_t most = 0;
    for (int i = 0; i < 20'000; ++i) {
      list.push(in, std::string_view("element"));
      if (list.size() > 100) list.pop(out);
      most = std::max(most, list.heap_size());
    }
    EXPECT_LE(most, 4 * 100 * 9u);
  }
}

// What a collection's records take, by the heap's count. The bound is what Redis 7.0 needs beside a key of
// its own: 16 bytes of object header, and the block of the listpack or intset.
std::size_t bytes_for_each(const std::function<Value()>& make) {
  constexpr std::size_t many = 1000;
  std::vector<Value> values;
  values.reserve(many);
  const std::size_t before = used_memory();
  for (std::size_t i = 0; i < many; ++i) values.push_back(make());
  return (used_memory() - before) / many;
}

TEST(SmallHash, of_five_fields_takes_no_more_than_in_redis) {
  const std::size_t bytes = bytes_for_each([] {
    Hash hash;
    for (int i = 0; i < 5; ++i) hash.set("field" + std::to_string(i), std::string_view("value1"), {512, 64});
    return Value(std::move(hash));
  });
  EXPECT_LE(bytes, 16u + 96u);
}

TEST(SmallSet, of_ten_integers_takes_no_more_than_in_redis) {
  const std::size_t bytes = bytes_for_each([] {
    Set set;
    for (int i = 0; i < 10; ++i) set.insert(std::to_string(1000 + i), {});
    return Value(std::move(set));
  });
  EXPECT_EQ(bytes, 0u) << "they lie in the value";
}

TEST(SmallSet, of_ten_texts_takes_no_more_than_in_redis) {
  const std::size_t bytes = bytes_for_each([] {
    Set set;
    for (int i = 0; i < 10; ++i) set.insert("member:" + std::to_string(i), {});
    return Value(std::move(set));
  });
  EXPECT_LE(bytes, 16u + 112u);
}

TEST(SmallSet, shows_texts_in_the_order_they_came) {
  Set set;
  for (const char* member : {"7", "b", "-5", "a"}) set.insert(member, {});
  set.erase("b");
  set.insert("b", {});
  std::vector<std::string> members;
  set.for_each([&](std::string_view member) { return members.emplace_back(member), true; });
  EXPECT_EQ(members, (std::vector<std::string>{"7", "-5", "a", "b"}));
}

TEST(SmallSet, of_many_integers_takes_no_more_than_their_width) {
  const std::size_t bytes = bytes_for_each([] {
    Set set;
    for (int i = 0; i < 512; ++i) set.insert(std::to_string(i), {});
    return Value(std::move(set));
  });
  EXPECT_LE(bytes, 16u + 1280u);
}

TEST(SmallList, of_ten_elements_takes_no_more_than_in_redis) {
  const std::size_t bytes = bytes_for_each([] {
    List list;
    for (int i = 0; i < 10; ++i) list.push(End::right, std::string_view("element0"));
    return Value(std::move(list));
  });
  EXPECT_LE(bytes, 16u + 48u + 32u + 112u);
}

TEST(SmallSortedSet, of_ten_members_takes_no_more_than_in_redis) {
  const std::size_t bytes = bytes_for_each([] {
    SortedSet zset;
    for (int i = 0; i < 10; ++i) zset.insert("member" + std::to_string(i), i, {128, 64});
    return Value(std::move(zset));
  });
  EXPECT_LE(bytes, 16u + 128u);
}

}  // namespace
}  // namespace weir::kv
