#include "verbs/check/suppressions.hpp"

#include <gtest/gtest.h>

namespace weir::check {
namespace {

const std::vector<Frame> frames{{"send_row", "src/buggy.c:9"}, {"main", "src/buggy.c:27"}};

struct Row {
  const char* file;
  bool covers;
};

TEST(Suppressions, cover_a_rule_by_function_file_or_place) {
  const Row rows[] = {
      {"local-protection:send_row\n", true},
      {"local-protection:main", true},
      {"local-protection:src/buggy.c", true},
      {"local-protection:*buggy.c:9\n", true},
      {"local-*:send_*\r\n", true},
      {"*:main", true},
      {"in-use:send_row\n", false},
      {"local-protection:other\n", false},
      {"# local-protection:send_row\n", false},
      {"", false},
      {"local-protection\n", false},
      {"in-use:*\n\nlocal-protection:main  \n", true},
  };
  for (const Row& row : rows)
    EXPECT_EQ(Suppressions(row.file).cover("local-protection", frames), row.covers) << row.file;
}

}  // namespace
}  // namespace weir::check
