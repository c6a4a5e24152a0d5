// Numbers, globs, quoted words and byte strings.
#include <gtest/gtest.h>

#include <cmath>

#include "kv/resp/words.hpp"
#include "kv/text/bytes.hpp"
#include "kv/text/glob.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {
namespace {

TEST(Numbers, integers_are_strict) {
  const std::pair<const char*, std::optional<std::int64_t>> table[] = {
      {"0", 0},
      {"-1", -1},
      {"9223372036854775807", 9223372036854775807LL},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
      {"9223372036854775808", std::nullopt},
      {"-9223372036854775809", std::nullopt},
      {"99999999999999999999", std::nullopt},
      {"", std::nullopt},
      {"-", std::nullopt},
      {"-0", std::nullopt},
      {"01", std::nullopt},
      {"+1", std::nullopt},
      {" 1", std::nullopt},
      {"1 ", std::nullopt},
      {"1.0", std::nullopt},
  };
  for (const auto& [text, value] : table) EXPECT_EQ(parse_int(text), value) << text;
}

TEST(Numbers, floats_reject_what_is_no_number) {
  EXPECT_EQ(parse_double("1.5"), 1.5);
  EXPECT_EQ(parse_double("-inf"), -INFINITY);
  EXPECT_EQ(parse_double("+5"), 5);
  for (const char* text : {"", " 1", "1 ", "nan", "1x", "1e5000"})
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
  EXPECT_EQ(parse_double(std::string(10000, '1')), std::nullopt);
}

TEST(Numbers, sizes_have_units) {
  const std::pair<const char*, std::optional<std::int64_t>> table[] = {
      {"10", 10},           {"1k", 1000},
      {"1kb", 1024},        {"2MB", 2 << 20},
      {"1gb", 1 << 30},     {"", std::nullopt},
      {"mb", std::nullopt}, {"1x", std::nullopt},
      {"-1", std::nullopt}, {"99999999999gb", std::nullopt}};
  for (const auto& [text, value] : table) EXPECT_EQ(parse_memory(text), value) << text;
}

TEST(Numbers, doubles_print_as_redis_prints_them) {
  EXPECT_EQ(format_double(3), "3");
  EXPECT_EQ(format_double(-0.0), "-0");
  EXPECT_EQ(format_double(0.1), "0.10000000000000001");
  EXPECT_EQ(format_double(1e20), "1e+20");
  EXPECT_EQ(format_double(INFINITY), "inf");
  EXPECT_EQ(format_long_double_human(10.5L), "10.5");
  EXPECT_EQ(format_long_double_human(3.0L), "3");
}

TEST(Globs, match_as_redis_matches) {
  const std::tuple<const char*, const char*, bool> table[] = {
      {"*", "", true},         {"*", "abc", true},     {"a*", "abc", true},        {"a*c", "abc", true},
      {"a*d", "abc", false},   {"a?c", "abc", true},   {"a?c", "ac", false},       {"[ab]c", "bc", true},
      {"[^ab]c", "bc", false}, {"[^ab]c", "cc", true}, {"[a-c]x", "bx", true},     {"[c-a]x", "bx", true},
      {"[a-c]x", "dx", false}, {"\\*", "*", true},     {"\\*", "a", false},        {"a\\", "a\\", true},
      {"[", "[", false},       {"[a", "a", true},      {"*a*b*c", "xaybzc", true}, {"*a*b*c", "xaybz", false},
      {"", "", true},          {"", "a", false},       {"**", "", true},           {"h[\\]]", "h]", true},
  };
  for (const auto& [pattern, text, matches] : table)
    EXPECT_EQ(glob_match(pattern, text), matches) << pattern << ' ' << text;
  EXPECT_TRUE(glob_match("ABC*", "abcd", Case::ignore));
}

TEST(Globs, take_time_in_proportion_not_in_powers) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(5000, 'a')));
}

TEST(Words, are_split_at_spaces_and_unquoted) {
  using List = std::vector<std::string>;
  EXPECT_EQ(split_words("a  b\tc"), (List{"a", "b", "c"}));
  EXPECT_EQ(split_words("\"a b\" 'c d'"), (List{"a b", "c d"}));
  EXPECT_EQ(split_words(R"("\x41\n\"")"), (List{"A\n\""}));
  EXPECT_EQ(split_words(R"('it\'s')"), (List{"it's"}));
  EXPECT_EQ(split_words("\"\""), (List{""}));
  EXPECT_EQ(split_words("  "), List{});
  for (const char* text : {"\"a", "'a", "\"a\"b", "'a'b"}) EXPECT_EQ(split_words(text), std::nullopt) << text;
}

TEST(Bytes, keep_their_value_when_a_shared_block_is_changed) {
  Bytes original(std::string(100, 'a'));
  Bytes copy = original;
  EXPECT_EQ(original.shared(), copy.shared());
  copy.append("b");
  EXPECT_EQ(original.view(), std::string(100, 'a'));
  EXPECT_EQ(copy.view(), std::string(100, 'a').append("b"));
  Bytes third = original;
  third.grow_zeroed(150)[0] = 'z';
  EXPECT_EQ(original.view()[0], 'a');
  third = original;
  third.assign("short");
  EXPECT_EQ(original.size(), 100u);
}

// A block that nobody shares goes where the heap can make it larger, mostly without a copy.
TEST(Bytes, keep_their_content_and_slack_when_large_blocks_grow) {
  Bytes text(std::string(3 << 20, 'a'));
  text.append("b");
  const std::size_t size = (3 << 20) + 1;
  EXPECT_EQ(text.heap_size(), sizeof(Blob) + size + (1 << 20));
  const char* const grown = text.grow_zeroed(6 << 20);
  EXPECT_EQ(std::string_view(grown, size), std::string(size - 1, 'a') + 'b');
  EXPECT_EQ(std::string_view(grown + size, 100), std::string(100, '\0'));
  EXPECT_EQ(text.size(), 6u << 20);
}

TEST(Bytes, grow_from_inline_to_a_block_and_keep_their_content) {
  Bytes text("x");
  std::string model = "x";
  for (int i = 0; i < 200; ++i) {
    text.append("yz");
    model += "yz";
    ASSERT_EQ(text.view(), model);
  }
  text.assign("abc");
  EXPECT_EQ(text.view(), "abc");
  EXPECT_EQ(std::string(text.grow_zeroed(5), 5), std::string("abc\0\0", 5));
}

}  // namespace
}  // namespace weir::kv
