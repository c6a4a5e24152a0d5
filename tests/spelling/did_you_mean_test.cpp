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

}  // namespace
}  // namespace weir
