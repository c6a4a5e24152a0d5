// DCQCN and go-back-N as dialogues: an event, the time, and the expected result.
#include <gtest/gtest.h>

#include "rnic/congestion/dcqcn.hpp"
#include "rnic/congestion/go_back_n.hpp"
#include "rnic/congestion/presets.hpp"

namespace weir::rnic::congestion {
namespace {

constexpr double line = 100e9;

TEST(ReactionPoint, FirstCnpHalvesTheRate) {
  ReactionPoint point(line);
  EXPECT_EQ(point.next_due(), never);
  point.on_cnp({}, 1000, line);
  EXPECT_DOUBLE_EQ(point.rate(), 50e9);
  EXPECT_DOUBLE_EQ(point.target(), line);
  EXPECT_DOUBLE_EQ(point.alpha(), 1);  // (1-g) 1 + g
}

TEST(ReactionPoint, FastRecoveryHalvesTheWayToTheTargetFiveTimes) {
  const DcqcnParameters parameters;
  ReactionPoint point(line);
  point.on_cnp(parameters, 0, line);
  double expected = 50e9;
  for (std::uint32_t step = 1; step < parameters.fast_recovery_steps; ++step) {
    point.advance(parameters, step * parameters.increase_interval, line);
    expected = (line + expected) / 2;
    EXPECT_DOUBLE_EQ(point.rate(), expected) << "after step " << step;
  }
}

TEST(ReactionPoint, AdditiveIncreaseRaisesTheTarget) {
  const DcqcnParameters parameters;
  ReactionPoint point(line);
  point.on_cnp(parameters, 0, line);
  point.on_cnp(parameters, 1, line);  // the target is now where the first cut left the rate
  EXPECT_DOUBLE_EQ(point.target(), 50e9);
  point.advance(parameters, 1 + parameters.fast_recovery_steps * parameters.increase_interval, line);
  EXPECT_DOUBLE_EQ(point.target(), 50e9 + parameters.additive_increase);
}

TEST(ReactionPoint, HyperIncreaseNeedsBothCounters) {
  const DcqcnParameters parameters;
  ReactionPoint point(line);
  point.on_cnp(parameters, 0, line);
  point.on_cnp(parameters, 0, line);
  for (std::uint32_t i = 0; i <= parameters.fast_recovery_steps; ++i)
    point.on_sent(parameters, parameters.increase_bytes, line);
  const double additive = point.target();
  EXPECT_DOUBLE_EQ(additive, 50e9 + 2 * parameters.additive_increase);
  point.advance(parameters, (parameters.fast_recovery_steps + 1) * parameters.increase_interval, line);
  EXPECT_GT(point.target(), additive + parameters.hyper_increase);
}

TEST(ReactionPoint, AlphaDecaysWithoutCnps) {
  const DcqcnParameters parameters;
  ReactionPoint point(line);
  point.on_cnp(parameters, 0, line);
  point.advance(parameters, 3 * parameters.alpha_interval, line);
  const double keep = 1 - parameters.g;
  EXPECT_DOUBLE_EQ(point.alpha(), keep * keep * keep);
}

TEST(ReactionPoint, LateAndPromptAdvancesAgree) {
  const DcqcnParameters parameters;
  ReactionPoint prompt(line), late(line);
  prompt.on_cnp(parameters, 0, line);
  late.on_cnp(parameters, 0, line);
  constexpr Time end = 2'000'000;
  for (Time now = 0; now <= end; now += 1000) prompt.advance(parameters, now, line);
  late.advance(parameters, end, line);
  EXPECT_EQ(prompt.rate(), late.rate());
  EXPECT_EQ(prompt.alpha(), late.alpha());
}

TEST(ReactionPoint, StaysBetweenItsLimits) {
  for (const auto& preset : dcqcn_presets()) {
    ReactionPoint point(line);
    for (Time now = 0; now < 20'000'000; now += 1'000) {
      if (now % 7'000 == 0) point.on_cnp(preset.parameters, now, line);
      point.on_sent(preset.parameters, 1048, line);
      point.advance(preset.parameters, now, line);
      ASSERT_GE(point.rate(), on_line(preset.parameters, preset.parameters.minimum_rate, line))
          << preset.name;
      ASSERT_LE(point.rate(), line) << preset.name;
      ASSERT_LE(point.alpha(), 1) << preset.name;
    }
  }
}

TEST(ReactionPoint, RatesForOneLineScaleWithAnother) {
  DcqcnParameters parameters;
  parameters.reference_rate = 25e9;
  for (const double speed : {10e9, 25e9, 100e9, 400e9}) {
    ReactionPoint point(speed), unit(25e9);
    for (Time now = 0; now < 3'000'000; now += 1'000) {
      for (auto* each : {&point, &unit})
        if (now % 150'000 == 0) each->on_cnp(parameters, now, each == &point ? speed : 25e9);
      point.advance(parameters, now, speed);
      unit.advance(parameters, now, 25e9);
      ASSERT_NEAR(point.rate() / speed, unit.rate() / 25e9, 1e-9) << speed << " at " << now;
    }
  }
}

TEST(ReactionPoint, WithoutAByteCounterTheTimerAloneComesToHyperIncrease) {
  DcqcnParameters parameters;
  parameters.increase_bytes = 0;
  parameters.fast_recovery_steps = 1;
  parameters.additive_increase = 0;
  ReactionPoint point(line);
  for (int cnp = 0; cnp < 6; ++cnp) point.on_cnp(parameters, 0, line);
  const double target = point.target();
  point.on_sent(parameters, 1u << 30, line);
  point.advance(parameters, parameters.increase_interval, line);
  EXPECT_EQ(point.target(), target);
  point.advance(parameters, 2 * parameters.increase_interval, line);
  EXPECT_EQ(point.target(), target + parameters.hyper_increase);
}

TEST(ReactionPoint, DecreasesAtMostOncePerInterval) {
  DcqcnParameters parameters;
  parameters.decrease_interval = 4'000;
  ReactionPoint point(line);
  point.on_cnp(parameters, 0, line);
  const double once = point.rate();
  point.on_cnp(parameters, 3'999, line);
  EXPECT_EQ(point.rate(), once);
  point.on_cnp(parameters, 4'000, line);
  EXPECT_LT(point.rate(), once);
}

TEST(NotificationPoint, SendsOneCnpAnInterval) {
  const DcqcnParameters parameters;
  NotificationPoint point;
  EXPECT_TRUE(point.on_marked(parameters, 10));
  EXPECT_FALSE(point.on_marked(parameters, 11));
  EXPECT_FALSE(point.on_marked(parameters, 10 + parameters.notification_interval - 1));
  EXPECT_TRUE(point.on_marked(parameters, 10 + parameters.notification_interval));
}

TEST(GoBackN, ReceiverNaksAGapOnce) {
  GoBackNReceiver receiver;
  EXPECT_EQ(receiver.on_packet(0), Arrival::deliver);
  EXPECT_EQ(receiver.on_packet(2), Arrival::nak);
  EXPECT_EQ(receiver.on_packet(3), Arrival::ignore);
  EXPECT_EQ(receiver.on_packet(0), Arrival::duplicate);
  EXPECT_EQ(receiver.on_packet(1), Arrival::deliver);
  EXPECT_EQ(receiver.on_packet(3), Arrival::nak);  // a new gap
  EXPECT_EQ(receiver.expected_psn(), 2u);
}

TEST(GoBackN, SenderGoesBackToTheMissingPacket) {
  GoBackNSender sender;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(sender.on_sent());
  EXPECT_EQ(sender.on_nak(4), 4u);
  EXPECT_EQ(sender.next(), 4u);
  EXPECT_TRUE(sender.on_sent());  // again
  EXPECT_EQ(sender.on_ack(10), 6u);
  EXPECT_EQ(sender.next(), 10u);  // what had arrived is not sent again
  EXPECT_EQ(sender.in_flight(), 0u);
}

TEST(GoBackN, StaleAndImpossiblePsnsChangeNothing) {
  GoBackNSender sender;
  for (int i = 0; i < 5; ++i) sender.on_sent();
  EXPECT_EQ(sender.on_ack(3), 3u);
  for (const std::uint32_t psn : {2u, 6u, 0x800000u, psn_mask}) {
    EXPECT_EQ(sender.on_ack(psn), 0u) << psn;
    EXPECT_EQ(sender.on_nak(psn), 0u) << psn;
    EXPECT_EQ(sender.next(), 5u);
  }
}

TEST(GoBackN, PsnsWrap) {
  GoBackNSender sender;
  GoBackNReceiver receiver;
  constexpr std::uint32_t packets = (1u << 24) + 100;
  for (std::uint32_t i = 0; i < packets; ++i) {
    ASSERT_EQ(receiver.on_packet(sender.psn()), Arrival::deliver);
    sender.on_sent();
    ASSERT_EQ(sender.on_ack(receiver.expected_psn()), 1u);
  }
  EXPECT_EQ(sender.acknowledged(), packets);
}

TEST(GoBackN, TimeoutSendsEverythingUnacknowledgedAgain) {
  GoBackNSender sender;
  for (int i = 0; i < 5; ++i) sender.on_sent();
  sender.on_ack(2);
  sender.on_timeout();
  EXPECT_EQ(sender.next(), 2u);
}

}  // namespace
}  // namespace weir::rnic::congestion
