// When the link's thread leaves a port's packets to a program that polls, and when it takes the port back.
#include "verbs/nic/packet_watch.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace weir::verbs {
namespace {

class PacketWatchTest : public testing::Test, private PacketWatch::Port {
 protected:
  static constexpr std::uint64_t us = 1'000;

  void polls(int times) {
    for (int i = 0; i < times; ++i) watch_.polled(now_ns_ += 2 * us);
  }
  // A packet wakes the link's thread, if it waits for packets.
  void packet_comes() {
    if (waits_) watch_.woken(now_ns_ += us);
  }
  void nap_passes() {
    ASSERT_TRUE(wakes_at_ns_.has_value());
    now_ns_ = std::max(now_ns_, *wakes_at_ns_);
    wakes_at_ns_.reset();
    watch_.nap_over(now_ns_);
  }
  void pass(std::uint64_t ns) { now_ns_ += ns; }
  void lend() {
    polls(1);
    packet_comes();
    ASSERT_TRUE(is_lent());
  }
  bool is_lent() const { return !waits_; }
  bool naps() const { return wakes_at_ns_.has_value(); }

  bool armed_ = false, packets_wait_ = false;
  PacketWatch watch_{*this};

 private:
  void wait_for_packets(bool wanted) override { waits_ = wanted; }
  bool holds_packets() override { return packets_wait_; }
  bool has_sleepers() override { return armed_; }
  void wake_at(std::uint64_t time_ns) override {
    EXPECT_FALSE(wakes_at_ns_.has_value()) << "one timer is enough";
    wakes_at_ns_ = time_ns;
  }

  std::uint64_t now_ns_ = 1'000'000'000;
  bool waits_ = true;
  std::optional<std::uint64_t> wakes_at_ns_;
};

TEST_F(PacketWatchTest, lends_to_a_program_that_polls) {
  polls(1);
  packet_comes();
  EXPECT_TRUE(is_lent());
  EXPECT_TRUE(naps());
}

TEST_F(PacketWatchTest, lends_nothing_when_nobody_has_polled_since_the_last_packet) {
  packet_comes();
  EXPECT_FALSE(is_lent());
  polls(1);
  pass(PacketWatch::recently_ns);
  packet_comes();
  EXPECT_FALSE(is_lent()) << "the last poll is long ago";
}

TEST_F(PacketWatchTest, lends_nothing_while_a_completion_queue_is_armed) {
  armed_ = true;
  polls(1);
  packet_comes();
  EXPECT_FALSE(is_lent());
  armed_ = false;
  pass(PacketWatch::nap_ns);
  polls(1);
  packet_comes();
  EXPECT_TRUE(is_lent());
}

TEST_F(PacketWatchTest, takes_back_at_once_when_a_completion_queue_is_armed) {
  lend();
  watch_.event_wanted();
  EXPECT_FALSE(is_lent());
  nap_passes();
  EXPECT_FALSE(is_lent());
  EXPECT_FALSE(naps());
}

TEST_F(PacketWatchTest, lends_nothing_to_a_program_that_sleeps_between_packets) {
  for (int packet = 0; packet < 1000; ++packet) {
    watch_.event_wanted();
    polls(1);
    packet_comes();
    ASSERT_FALSE(is_lent()) << packet;
  }
  pass(PacketWatch::nap_ns);
  lend();
}

TEST_F(PacketWatchTest, goes_on_lending_while_the_program_polls_often) {
  lend();
  for (int nap = 0; nap < 100; ++nap) {
    pass(PacketWatch::nap_ns - 2 * us * PacketWatch::polls_in_a_nap);
    polls(PacketWatch::polls_in_a_nap);
    packets_wait_ = nap % 2 == 0;  // they came a moment ago
    nap_passes();
    ASSERT_TRUE(is_lent() && naps()) << nap;
  }
}

TEST_F(PacketWatchTest, takes_back_when_polls_become_seldom) {
  lend();
  polls(PacketWatch::polls_in_a_nap - 1);
  nap_passes();
  EXPECT_FALSE(is_lent());
  lend();
}

TEST_F(PacketWatchTest, lends_nothing_for_longer_and_longer_where_packets_had_to_wait) {
  for (std::uint64_t pause_ns = PacketWatch::first_pause_ns; pause_ns <= PacketWatch::longest_pause_ns;
       pause_ns *= 2) {
    lend();
    packets_wait_ = true;
    nap_passes();
    EXPECT_FALSE(is_lent());
    packets_wait_ = false;
    pass(pause_ns - 100 * us);
    polls(1);
    packet_comes();
    EXPECT_FALSE(is_lent()) << pause_ns;
    pass(100 * us);
  }
}

TEST_F(PacketWatchTest, forgives_a_program_that_has_polled_for_long) {
  lend();
  packets_wait_ = true;
  nap_passes();
  pass(PacketWatch::first_pause_ns);
  packets_wait_ = false;
  lend();
  for (int nap = 0; nap < 30; ++nap) {
    for (int i = 0; i < 100; ++i) polls(3);
    nap_passes();
    ASSERT_TRUE(is_lent());
  }
  pass(PacketWatch::nap_ns);
  packets_wait_ = true;
  nap_passes();
  pass(PacketWatch::first_pause_ns);
  lend();
}

}  // namespace
}  // namespace weir::verbs
