// Tests the measurement itself, with given times.
#include <gtest/gtest.h>

#include "tests/bystander/table.hpp"

namespace weir::bystander {
namespace {

using std::chrono::milliseconds;

const auto everything = [](const Wait&) { return true; };

TEST(Watch, wait_belongs_to_the_misdeed_during_which_it_ends) {
  Watch watch;
  const Clock::time_point start(std::chrono::hours(1));
  watch.during(0);
  watch.asks(2, Visit::fresh, start);
  watch.during(1);
  watch.answered(2, Visit::fresh, start + milliseconds(70));
  EXPECT_EQ(watch.select([](const Wait& w) { return w.during == 0; }).count(), 0u);
  EXPECT_EQ(watch.select([](const Wait& w) { return w.during == 1 && w.transport == 2; }).worst_us(),
            70'000u);
}

TEST(Watch, who_still_waits_is_seen_and_counts_when_given_up) {
  Watch watch;
  const Clock::time_point start(std::chrono::hours(1));
  watch.asks(0, Visit::standing, start);
  watch.asks(4, Visit::fresh, start + milliseconds(500));
  EXPECT_EQ(watch.longest_open(start + milliseconds(900)), milliseconds(900));
  EXPECT_FALSE(watch.all_since(start + milliseconds(100)));
  watch.answered(0, Visit::standing, start + milliseconds(900));
  EXPECT_TRUE(watch.all_since(start + milliseconds(100)));
  EXPECT_EQ(watch.longest_open(start + milliseconds(900)), milliseconds(400));
  watch.give_up(start + milliseconds(6500));
  EXPECT_EQ(watch.select(everything).worst_us(), 6'000'000u);
  EXPECT_EQ(watch.longest_open(start + milliseconds(9000)), milliseconds(0));
}

TEST(Watch, a_wait_for_keys_may_last_as_long_as_a_script) {
  Watch watch;
  const Clock::time_point start(std::chrono::hours(1));
  watch.asks(1, Visit::timed, start);
  EXPECT_EQ(watch.longest_open(start + Watch::script_holds), milliseconds(0));
  EXPECT_EQ(watch.longest_open(start + Watch::script_holds + milliseconds(300)), milliseconds(300));
  EXPECT_TRUE(watch.all_since(start + milliseconds(1)));
}

TEST(Waits, percentiles_are_of_waits_that_were) {
  std::vector<std::uint32_t> us;
  for (std::uint32_t i = 1000; i > 0; --i) us.push_back(i);
  const Waits waits(us);
  EXPECT_EQ(waits.percentile_us(50), 501u);
  EXPECT_EQ(waits.percentile_us(99.9), 1000u);
  EXPECT_EQ(waits.worst_us(), 1000u);
  EXPECT_EQ(Waits({}).percentile_us(99), 0u);
}

TEST(Table, names_the_transport_from_which_the_worst_wait_came) {
  Watch watch;
  const Clock::time_point start(std::chrono::hours(1));
  for (const auto& [during, ms] : {std::pair(0, 3), std::pair(1, 40)}) {
    watch.during(static_cast<std::uint16_t>(during));
    watch.asks(1, Visit::standing, start);
    watch.answered(1, Visit::standing, start + milliseconds(ms));
  }
  const std::vector<Row> rows{{"slow", "tcp", 5, 3 << 20}, {"slow", "rdma", 6, 0}};
  const std::string table = table_of(rows, watch);
  EXPECT_NE(table.find("| slow | 11 | 3 | 0.00 | 40 | 0.00 | 0.00 | 0.00 | 0.00 | rdma |"), std::string::npos)
      << table;
}

}  // namespace
}  // namespace weir::bystander
