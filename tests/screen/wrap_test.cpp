#include "screen/wrap.hpp"

#include <gtest/gtest.h>

namespace weir::screen {
namespace {

struct Row {
  const char* name;
  std::size_t columns;
  const char* text;
  const char* wrapped;
};

class Wrap : public testing::TestWithParam<Row> {};

TEST_P(Wrap, breaks_between_words) {
  EXPECT_EQ(wrapped(GetParam().text, GetParam().columns), GetParam().wrapped);
}

// 110 columns: a line that was broken because it was full.
#define FULL                                                                                          \
  "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen " \
  "seventeen on"

const Row rows[] = {
    {"no_terminal", 0, "a b c d e f g h i j k l m n o p q r s t u v w x y z\n",
     "a b c d e f g h i j k l m n o p q r s t u v w x y z\n"},
    {"what_fits", 30, "  --json    a\n\nb", "  --json    a\n\nb"},
    {"prose", 20, "a line of several words\nand another\n", "a line of several\nwords\nand another\n"},
    {"an_option", 40, "  --json FILE  writes everything into that file\n",
     "  --json FILE  writes everything into\n               that file\n"},
    {"an_option_without_room", 30, "  --suppressions FILE  nothing about them at all\n",
     "  --suppressions FILE  nothing\n      about them at all\n"},
    {"usage", 30, "Usage: weir sim [OPTIONS] SCENARIO.toml\n",
     "Usage: weir sim [OPTIONS]\n       SCENARIO.toml\n"},
    {"a_command", 30, "  Twice:\n    $ weir sim --set alpha=1 -o out scenario.toml\n",
     "  Twice:\n    $ weir sim --set alpha=1 \\\n        -o out scenario.toml\n"},
    {"a_broken_command", 30, "  $ weir sim \\\n      -o out a/long/scenario.toml and more\n",
     "  $ weir sim -o out \\\n      a/long/scenario.toml \\\n      and more\n"},
    {"full_lines_are_joined", 100, FULL "\neighteen\n\nnineteen\n",
     "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen\n"
     "seventeen on eighteen\n\nnineteen\n"},
    {"a_long_word", 20, "see https://example.org/a/long/path there\n",
     "see\nhttps://example.org/a/long/path\nthere\n"},
    {"utf8", 20, "größer größer größer größer\n", "größer größer größer\ngrößer\n"},
    {"no_end_of_line", 20, "weir run: there is no such host", "weir run: there is\nno such host"},
};

INSTANTIATE_TEST_SUITE_P(Screen, Wrap, testing::ValuesIn(rows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::screen
