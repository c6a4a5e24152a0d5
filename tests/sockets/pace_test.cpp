#include "sockets/pace.hpp"

#include <gtest/gtest.h>

#include "sockets/after_full.hpp"

namespace weir::sockets {
namespace {

using std::chrono::microseconds;

class Sends : public ::testing::Test {
 protected:
  void window(std::uint32_t wakes, microseconds each) {
    for (std::uint32_t i = 0; i < Pace::window; ++i) pace_.sent_by_ring(now_, each, i < wakes);
  }
  Pace::Duration rest() {
    const auto before = now_;
    while (!pace_.ring_pays(now_)) now_ += microseconds(100);
    return now_ - before;
  }

  Pace pace_;
  Pace::TimePoint now_{std::chrono::seconds(1)};
};

TEST_F(Sends, the_ring_pays_while_most_receivers_are_awake) {
  pace_.sent_by_tcp(microseconds(5));
  EXPECT_TRUE(pace_.ring_pays(now_));
  window(Pace::window / 2 - 1, microseconds(9));
  EXPECT_TRUE(pace_.ring_pays(now_));
}

TEST_F(Sends, the_ring_pays_while_waking_by_it_is_cheaper_than_tcp) {
  pace_.sent_by_tcp(microseconds(5));
  window(Pace::window, microseconds(4));
  EXPECT_TRUE(pace_.ring_pays(now_));
  window(Pace::window, microseconds(6));
  EXPECT_FALSE(pace_.ring_pays(now_));
}

TEST_F(Sends, what_tcp_takes_is_found_out_first) {
  window(Pace::window, microseconds(4));
  EXPECT_EQ(rest(), Pace::shortest_rest);
  pace_.sent_by_tcp(microseconds(5));
  window(Pace::window, microseconds(4));
  EXPECT_TRUE(pace_.ring_pays(now_));
}

TEST_F(Sends, each_dear_window_doubles_the_time_by_tcp_up_to_a_limit) {
  pace_.sent_by_tcp(microseconds(5));
  std::chrono::milliseconds expected = Pace::shortest_rest;
  for (int i = 0; i < 8; ++i) {
    window(Pace::window, microseconds(6));
    EXPECT_EQ(rest(), expected);
    expected = std::min(2 * expected, Pace::longest_rest);
  }
  window(0, microseconds(6));
  window(Pace::window, microseconds(6));
  EXPECT_EQ(rest(), Pace::shortest_rest);
}

TEST_F(Sends, time_in_which_something_else_had_the_core_counts_little) {
  for (int i = 0; i < 20; ++i) pace_.sent_by_tcp(microseconds(i == 0 ? 100'000 : 5));
  window(Pace::window, microseconds(12));
  EXPECT_FALSE(pace_.ring_pays(now_));
}

std::uint64_t bytes_by_tcp(AfterFull& after, std::uint64_t a_send) {
  std::uint64_t bytes = 0;
  for (; !after.may_enter(); bytes += a_send) after.sent_by_tcp(a_send);
  return bytes;
}

TEST(AfterFull, each_time_the_ring_is_full_doubles_what_goes_by_tcp_up_to_a_limit) {
  AfterFull after;
  EXPECT_TRUE(after.may_enter());
  std::uint64_t expected = AfterFull::least;
  for (int i = 0; i < 12; ++i) {
    after.was_full();
    EXPECT_EQ(bytes_by_tcp(after, 1 << 16), expected);
    expected = std::min(2 * expected, AfterFull::most);
  }
}

TEST(AfterFull, a_reader_that_keeps_up_makes_it_forget) {
  AfterFull after;
  for (int i = 0; i < 3; ++i) after.was_full();
  after.sent_by_ring(AfterFull::keeps_up);
  after.was_full();
  EXPECT_EQ(bytes_by_tcp(after, 1 << 16), AfterFull::least);
}

TEST(AfterFull, small_sends_bring_the_ring_back_soon) {
  AfterFull after;
  after.was_full();
  EXPECT_EQ(bytes_by_tcp(after, 1), AfterFull::least / AfterFull::least_a_send);
}

}  // namespace
}  // namespace weir::sockets
