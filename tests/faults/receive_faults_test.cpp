#include "faults/receive_faults.hpp"

#include <gtest/gtest.h>

#include <string>

#include "faults/language.hpp"

namespace weir::faults {
namespace {

constexpr std::uint64_t ms = 1'000'000, never = ReceiveFaults::for_ever;

// Ten messages, one every millisecond unless it waits: for how many milliseconds each did. '*': for ever.
std::string waits_of_ten(std::string_view text, std::uint64_t qp = 1) {
  ReceiveFaults faults(read_plan(text).value());
  std::string waits;
  std::uint64_t now_ns = 0, held_from = 0;
  for (std::uint64_t message = 1; message <= 10; ++message, now_ns += ms) {
    held_from = faults.next(qp, message, now_ns).value_or(0);
    std::uint64_t passes_at_ns = now_ns;
    if (held_from != 0 && message >= held_from) passes_at_ns = faults.refused(qp, message, now_ns);
    if (passes_at_ns == never) return waits + '*';
    waits += static_cast<char>('0' + (passes_at_ns - now_ns) / ms);
    now_ns = passes_at_ns;
  }
  return waits;
}

TEST(ReceiveFaults, conditions_choose_messages_and_how_long_they_wait) {
  struct Row {
    std::string_view text, waits;
  };
  const Row rows[] = {
      {"rnr", "*"},
      {"rnr 2ms", "2222222222"},
      {"rnr 2ms nth=3", "0020000000"},
      {"rnr 2ms nth=3..5", "0022200000"},
      {"rnr 2ms times=2", "2200000000"},
      {"rnr 2ms qp=2", "0000000000"},
      {"rnr nth=4", "000*"},
      {"rnr from=2ms until=7ms", "0050000000"},
      {"rnr 2ms from=2ms until=7ms", "0022000000"},
      {"rnr 2ms nth=3; rnr 5ms nth=3; rnr 1ms nth=9", "0050000010"},
      {"drop", "0000000000"},
  };
  for (const Row& row : rows) EXPECT_EQ(waits_of_ten(row.text), row.waits) << row.text;
}

TEST(ReceiveFaults, counts_and_remembers_what_waited) {
  ReceiveFaults faults(read_plan("rnr 2ms").value(), 2);
  for (std::uint64_t message = 1; message <= 3; ++message) (void)faults.refused(7, message, message * ms);
  ASSERT_EQ(faults.tallies()[0].fired, 3u);
  ASSERT_EQ(faults.tallies()[0].firings.size(), 2u);
  EXPECT_EQ(faults.tallies()[0].firings[1].message, 2u);
  EXPECT_EQ(faults.tallies()[0].firings[1].at_ns, 2 * ms);
  EXPECT_EQ(faults.tallies()[0].firings[1].qp, 7u);
}

TEST(ReceiveFaults, turning_points_are_the_times_of_its_own_faults) {
  const ReceiveFaults faults(read_plan("rnr from=1ms until=2ms\ndown from=9ms\nrnr 1ms until=3ms").value());
  EXPECT_EQ(faults.turning_points(), (std::vector<std::uint64_t>{1 * ms, 2 * ms, 3 * ms}));
}

}  // namespace
}  // namespace weir::faults
