// `weir seeds` finds each wrong program, names the weakness that it takes, and lets its right neighbour pass.
#include <gmock/gmock.h>

#include "tests/cli/run_weir.hpp"

namespace weir::weak_test {
namespace {

using command::Ended;
using command::run_weir;
using testing::HasSubstr;

struct Row {
  const char* program;
  const char* takes;
};

class WeakPrograms : public testing::TestWithParam<Row> {
 protected:
  Ended seeds(const char* count, const char* side) {
    ::setenv("WEIR_RUNTIME_DIR", runtime_.path().c_str(), 1);
    return run_weir({"seeds", count, "--lib-dir", DROP_IN_LIBRARIES, "--timeout", "20", "--", WEAK_PROGRAMS,
                     GetParam().program, side});
  }
  command::TemporaryDirectory runtime_;
};
INSTANTIATE_TEST_SUITE_P(Each, WeakPrograms,
                         testing::Values(Row{"reuse", "one weakness: delay"},
                                         Row{"early_look", "one of these weaknesses: delay, lines"},
                                         Row{"last_byte", "one weakness: lines"},
                                         Row{"relay", "one weakness: unfenced"},
                                         Row{"read_then_write", "one weakness: unfenced"},
                                         Row{"failed_fields", "one weakness: failed-fields"}),
                         [](const auto& param_info) { return param_info.param.program; });

TEST_P(WeakPrograms, wrong_is_found_and_its_weakness_named) {
  const Ended ended = seeds("20", "wrong");
  EXPECT_EQ(ended.status, 1) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("exit status 1"));
  EXPECT_THAT(ended.out, HasSubstr("It takes " + std::string(GetParam().takes)));
}

TEST_P(WeakPrograms, right_passes_every_seed) {
  const Ended ended = seeds("20", "right");
  EXPECT_EQ(ended.status, 0) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("20 of 20 seeds passed"));
}

// Its wrong neighbour hangs with some seeds, which takes long.
TEST(WeakSleeper, that_polls_behind_its_arm_passes_every_seed) {
  const command::TemporaryDirectory runtime;
  ::setenv("WEIR_RUNTIME_DIR", runtime.path().c_str(), 1);
  const Ended ended =
      run_weir({"seeds", "20", "--lib-dir", DROP_IN_LIBRARIES, "--", WEAK_PROGRAMS, "asleep", "right"});
  EXPECT_EQ(ended.status, 0) << ended.out;
}

// ---- the command

Ended seeds_of(std::vector<std::string> words) {
  words.insert(words.begin(), {"seeds", "3", "--lib-dir", DROP_IN_LIBRARIES});
  return run_weir(words);
}

TEST(WeirSeeds, what_fails_without_weakness_is_not_the_nics_fault) {
  const Ended ended = seeds_of({"--", "sh", "-c", "echo broken; exit 7"});
  EXPECT_EQ(ended.status, 3);
  EXPECT_THAT(ended.out, HasSubstr("fails without any weakness, too: exit status 7"));
  EXPECT_THAT(ended.out, HasSubstr("| broken"));
}

TEST(WeirSeeds, a_program_that_does_not_end_is_ended) {
  // It waits for its weakness only.
  const std::string program = "[ -z \"$WEIR_WEAK\" ] || sleep 100 & wait";
  const Ended ended = seeds_of({"--timeout", "1", "--json", "--", "sh", "-c", program});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.out, HasSubstr("\"seed\": 1"));
  EXPECT_THAT(ended.out, HasSubstr("no end after 1 s"));
}

TEST(WeirSeeds, passes_seeds_and_words_to_the_program) {
  const std::string program = "[ -z \"$WEIR_WEAK\" ] || echo \"$WEIR_WEAK\" >>";
  const command::TemporaryDirectory folder;
  const std::string seen = folder.path() / "seen";
  const Ended ended = seeds_of({"--from", "5", "--weak=-lines", "--", "sh", "-c", program + seen});
  EXPECT_EQ(ended.status, 0) << ended.out;
  std::ifstream file(seen);
  EXPECT_EQ(std::string(std::istreambuf_iterator(file), {}), "5,-lines\n6,-lines\n7,-lines\n");
}

TEST(WeirSeeds, refuses_what_it_cannot_do) {
  struct Wrong {
    std::vector<std::string> words;
    const char* says;
  };
  for (const Wrong& wrong :
       {Wrong{{"seeds", "0", "--", "true"}, "1 or more"}, Wrong{{"seeds", "3"}, "no command given"},
        Wrong{{"seeds", "--timeout", "x", "--", "true"}, "--timeout wants seconds"},
        Wrong{{"seeds", "--weak=hope", "--", "true"}, "'hope' is no weakness"},
        Wrong{{"run", "--weak=1,hope", "--", "true"}, "'hope' is no weakness"}}) {
    const Ended ended = run_weir(wrong.words);
    EXPECT_EQ(ended.status, 2) << wrong.says;
    EXPECT_THAT(ended.out, HasSubstr(wrong.says));
  }
}

}  // namespace
}  // namespace weir::weak_test
