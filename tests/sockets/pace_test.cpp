#include "sockets/pace.hpp"

#include <gtest/gtest.h>

#include "sockets/after_full.hpp"

namespace weir::sockets {
namespace {

void send_window(Pace& pace, std::uint32_t wakes) {
  for (std::uint32_t i = 0; i < Pace::window; ++i) pace.sent_by_ring(i < wakes);
}

std::uint32_t sends_by_tcp(Pace& pace) {
  std::uint32_t sends = 0;
  for (; !pace.ring_pays(); ++sends) pace.sent_by_tcp();
  return sends;
}

TEST(Pace, the_ring_pays_until_half_of_the_sends_had_to_wake) {
  Pace pace;
  EXPECT_TRUE(pace.ring_pays());
  send_window(pace, Pace::window / 2 - 1);
  EXPECT_TRUE(pace.ring_pays());
  send_window(pace, Pace::window / 2);
  EXPECT_FALSE(pace.ring_pays());
}

TEST(Pace, each_window_in_vain_doubles_what_goes_by_tcp_up_to_a_limit) {
  Pace pace;
  std::uint32_t expected = Pace::shortest_rest;
  for (int i = 0; i < 12; ++i) {
    send_window(pace, Pace::window);
    EXPECT_EQ(sends_by_tcp(pace), expected);
    expected = std::min(2 * expected, Pace::longest_rest);
  }
}

TEST(Pace, a_window_that_paid_forgets_those_in_vain) {
  Pace pace;
  for (int i = 0; i < 3; ++i) {
    send_window(pace, Pace::window);
    sends_by_tcp(pace);
  }
  send_window(pace, 0);
  send_window(pace, Pace::window);
  EXPECT_EQ(sends_by_tcp(pace), Pace::shortest_rest);
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
