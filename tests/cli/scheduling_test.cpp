// What the kernel says of a thread's time, and what of it counts as waiting for others.
#include "cli/benchmark/scheduling.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/scratch_directory.hpp"

namespace weir::benchmark {
namespace {

TEST(Scheduling, is_read_from_three_numbers_and_nothing_else) {
  const struct {
    const char* text;
    std::optional<Scheduling> read;
  } cases[] = {{"170844343 54778894 95\n", Scheduling{170844343, 54778894, 95}},
               {"1 2 3", Scheduling{1, 2, 3}},
               {"0 0 0\n", Scheduling{}},
               {"18446744073709551615 0 0\n", Scheduling{18446744073709551615u, 0, 0}},
               {"18446744073709551616 0 0\n", std::nullopt},
               {"", std::nullopt},
               {"1 2", std::nullopt},
               {"1 2 \n", std::nullopt},
               {"1 -2 3\n", std::nullopt},
               {"1 2 3 4\n", std::nullopt},
               {"1 2 3x\n", std::nullopt},
               {"ran waited times\n", std::nullopt}};
  for (const auto& [text, read] : cases) EXPECT_EQ(parse_schedstat(text), read) << text;
}

TEST(Scheduling, counts_as_waiting_for_others_what_is_more_than_waking_up) {
  const struct {
    Scheduling before, after;
    std::uint64_t waited_ns;
  } cases[] = {{{0, 0, 0}, {0, 0, 0}, 0},
               {{50, 1'000'000, 10}, {90, 5'000'000, 11}, 3'990'000},
               {{50, 0, 0}, {90, 2'000'000, 1000}, 0},  // a thousand times 2 us: an idle machine
               {{50, 0, 0}, {90, 12'000'000, 1000}, 2'000'000},
               {{50, 7, 7}, {90, 6, 6}, 0}};
  for (const auto& [before, after, waited_ns] : cases)
    EXPECT_EQ(after.waited_for_others_ns(before), waited_ns) << after.waited_ns << ' ' << after.times;
}

TEST(Scheduling, of_a_thread_is_in_the_kernels_file_if_the_kernel_counts) {
  const test::ScratchDirectory folder;
  EXPECT_EQ(scheduling_of_this_thread(folder.file("none")), std::nullopt);
  std::ofstream(folder.file("some")) << "4 5 6\n";
  EXPECT_EQ(scheduling_of_this_thread(folder.file("some")), (Scheduling{4, 5, 6}));
}

}  // namespace
}  // namespace weir::benchmark
