#include "cli/json_text.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace weir {
namespace {

TEST(JsonText, puts_marks_and_lines_where_they_belong) {
  JsonText json;
  json.begin_object().key("a").number(1).key("b").begin_array().end().line(2).key("c").begin_array();
  json.text("x").boolean(false).line(4).number(-2.5, 3).line(4).begin_object().end().line(2).end();
  json.key("d").begin_object().end().line(0).end();
  EXPECT_EQ(json.take(),
            "{\"a\": 1, \"b\": [],\n  \"c\": [\"x\", false,\n    -2.500,\n    {}\n  ], \"d\": {}\n}");
}

TEST(JsonText, is_json_whatever_is_written) {
  const std::string_view texts[] = {"",           "a\"b\\c\n", {"\0\x1f\x7f", 3}, "caf\xc3\xa9",
                                    "half: \xc3", "</script>"};
  const double numbers[] = {0, -0.0, 1e300, 5e-324, -1.5, 1e18};
  JsonText json;
  json.begin_array();
  for (const std::string_view text : texts) json.line(1).begin_object().key(text).text(text).end();
  for (const double number : numbers) json.number(number, 6);
  json.number(std::numeric_limits<std::uint64_t>::max()).number(std::numeric_limits<std::int64_t>::min());
  const auto read = nlohmann::json::parse(json.end().take(), nullptr, false);
  ASSERT_FALSE(read.is_discarded());
  ASSERT_EQ(read.size(), std::size(texts) + std::size(numbers) + 2);
  EXPECT_EQ(read[1]["a\"b\\c\n"], "a\"b\\c\n");
  EXPECT_EQ(read[2].size(), 1u);
  EXPECT_EQ(read[4].begin().value(), "half: \xef\xbf\xbd");
  EXPECT_EQ(read.back(), std::numeric_limits<std::int64_t>::min());
}

TEST(JsonText, has_null_for_what_is_no_number) {
  using Limits = std::numeric_limits<double>;
  for (const double number : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()})
    EXPECT_EQ(JsonText().number(number, 1).take(), "null");
}

}  // namespace
}  // namespace weir
