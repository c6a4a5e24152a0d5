#include "spelling/did_you_mean.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

constexpr std::string_view commands[] = {"run",  "trace", "devices", "stat",
                                         "plan", "sim",   "rpc",     "completion"};

TEST(DidYouMean, names_the_nearest_and_nothing_that_is_far) {
  const struct {
    std::string_view word, meant;
  } rows[] = {{"paln", "plan"},
              {"plam", "plan"},
              {"rnu", "run"},
              {"device", "devices"},
              {"stats", "stat"},
              {"tarce", "trace"},
              {"competion", "completion"},
              {"", ""},
              {"server", ""},
              {"xyzzy", ""},
              {"plan", ""}};
  for (const auto& [word, meant] : rows)
    EXPECT_EQ(did_you_mean(word, commands),
              meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?")
        << word;
  EXPECT_EQ(did_you_mean(std::string(100000, 'p'), commands), "");
}

TEST(DidYouMean, takes_options_from_the_help) {
  constexpr std::string_view help = "  --json, --lib-dir DIR\n  --help   this text -- and no more\n";
  EXPECT_EQ(did_you_mean_option("--jsn", help), "; did you mean '--json'?");
  EXPECT_EQ(did_you_mean_option("--libdir=/usr", help), "; did you mean '--lib-dir'?");
  EXPECT_EQ(did_you_mean_option("--json", help), "");
  EXPECT_EQ(did_you_mean_option("jsn", help), "");
  EXPECT_EQ(did_you_mean_option("--zzzzzzzz", help), "");
}

TEST(OptionComplaint, tells_an_unknown_option_from_one_without_its_value) {
  constexpr std::string_view help = "  --json, --lib-dir DIR\n";
  EXPECT_EQ(option_complaint("--jsn", help), "unknown option --jsn; did you mean '--json'?");
  EXPECT_EQ(option_complaint("--zzzzzzzz=1", help), "unknown option --zzzzzzzz");
  EXPECT_EQ(option_complaint("-x", help), "unknown option -x");
  EXPECT_EQ(option_complaint("--lib-dir", help), "--lib-dir needs a value");
  EXPECT_EQ(option_complaint("--json=3", help), "--json takes no value");
}

}  // namespace
}  // namespace weir
