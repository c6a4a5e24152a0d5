#include "sockets/pace.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace weir::sockets
