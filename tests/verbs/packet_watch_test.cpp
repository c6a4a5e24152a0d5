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
  // Packets that follow each other soon, each to a program that has armed a queue and sleeps.
  void wake_sleeper(std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) {
      watch_.event_wanted();
      packet_comes();
      polls(1);
    }
  }
  void lend_to_sleeper_at_last() {
    wake_sleeper(PacketWatch::wakes_before + 1);
    ASSERT_TRUE(wakes_sleeper_ && is_lent());
  }
  bool is_lent() const { return !waits_; }
  bool naps() const { return wakes_at_ns_.has_value(); }

  bool armed_ = false, packets_wait_ = false;
  bool sleeper_can_hold_ = false, wakes_sleeper_ = false;
  PacketWatch watch_{*this};

 private:
  void wait_for_packets(bool wanted) override { waits_ = wanted; }
  bool holds_packets() override { return packets_wait_; }
  bool has_sleepers() override { return armed_; }
  bool lend_to_sleeper() override { return wakes_sleeper_ = sleeper_can_hold_; }
  void take_from_sleeper() override { wakes_sleeper_ = false; }
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

class SleeperTest : public PacketWatchTest {
 protected:
  SleeperTest() { sleeper_can_hold_ = true; }
};

TEST_F(SleeperTest, is_lent_the_port_when_woken_again_and_again) {
  wake_sleeper(PacketWatch::wakes_before);
  EXPECT_FALSE(is_lent());
  wake_sleeper(1);
  EXPECT_TRUE(wakes_sleeper_ && is_lent() && naps());
}

TEST_F(SleeperTest, keeps_the_port_when_it_arms_a_queue) {
  lend_to_sleeper_at_last();
  watch_.event_wanted();
  EXPECT_TRUE(wakes_sleeper_ && is_lent());
}

TEST_F(SleeperTest, is_lent_nothing_where_a_descriptor_may_block) {
  sleeper_can_hold_ = false;
  wake_sleeper(100);
  EXPECT_FALSE(is_lent());
}

TEST_F(SleeperTest, is_lent_nothing_while_packets_come_seldom) {
  for (std::uint32_t i = 0; i < 2 * PacketWatch::wakes_before; ++i) {
    wake_sleeper(1);
    pass(PacketWatch::doze_ns);
  }
  EXPECT_FALSE(is_lent());
}

TEST_F(SleeperTest, is_lent_nothing_while_it_arms_no_queue) {
  for (std::uint32_t i = 0; i < 2 * PacketWatch::wakes_before; ++i) packet_comes();
  EXPECT_FALSE(wakes_sleeper_);
}

TEST_F(SleeperTest, keeps_the_port_while_it_takes_packets) {
  lend_to_sleeper_at_last();
  for (int doze = 0; doze < 100; ++doze) {
    polls(1);
    packets_wait_ = doze % 2 == 0;
    nap_passes();
    ASSERT_TRUE(wakes_sleeper_ && is_lent() && naps()) << doze;
  }
}

TEST_F(SleeperTest, loses_the_port_when_nothing_comes_and_is_lent_it_again) {
  lend_to_sleeper_at_last();
  nap_passes();  // it has taken the last packet
  nap_passes();
  EXPECT_TRUE(!wakes_sleeper_ && !is_lent() && !naps());
  lend_to_sleeper_at_last();
}

TEST_F(SleeperTest, loses_the_port_for_a_while_where_packets_had_to_wait) {
  lend_to_sleeper_at_last();
  nap_passes();  // it has taken the last packet
  packets_wait_ = true;
  nap_passes();
  EXPECT_TRUE(!wakes_sleeper_ && !is_lent());
  packets_wait_ = false;
  wake_sleeper(100);
  EXPECT_FALSE(is_lent());
  pass(PacketWatch::first_pause_ns);
  lend_to_sleeper_at_last();
}

TEST_F(SleeperTest, loses_the_port_when_channels_come_or_go) {
  lend_to_sleeper_at_last();
  watch_.channels_change();
  EXPECT_TRUE(!wakes_sleeper_ && !is_lent());
}

}  // namespace
}  // namespace weir::verbs
