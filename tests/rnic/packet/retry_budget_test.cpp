// How often and how long a request is retried, and what happens then: timeouts, RNR NAKs, probes, refusals.
#include <gtest/gtest.h>

#include "bottle.hpp"
#include "rnic/packet/rnr_timer.hpp"

namespace weir::rnic::packet::test {
namespace {

const Operation a_send{.opcode = SendOpcode::send, .length = 100};

void post_sends(Bottle& bottle, int count) {
  for (int i = 0; i < count; ++i) bottle.ends[0]->post(*bottle.ends[1], a_send);
}

struct TimeoutRow {
  std::uint8_t timeout, retry_cnt;
};

TEST(RetryBudget, of_a_peer_that_is_gone_ends_after_its_last_retry) {
  for (const TimeoutRow row : {TimeoutRow{8, 0}, {8, 1}, {10, 7}, {14, 3}}) {
    SCOPED_TRACE(int{row.retry_cnt});
    Bottle bottle({.timeout = row.timeout, .retry_cnt = row.retry_cnt});
    bottle.fate = [](std::uint64_t) { return Fate{.dropped = true}; };
    const std::uint64_t began = bottle.now_ns;
    post_sends(bottle, 2);
    ASSERT_TRUE(bottle.run());
    EXPECT_EQ(bottle.ends[0]->completions, (std::vector{WcStatus::retry_exc_err}));
    EXPECT_EQ(bottle.now_ns - began, ack_timeout_ns(row.timeout) * (row.retry_cnt + 1u));
    EXPECT_EQ(bottle.ends[0]->requester->counts().timeouts, row.retry_cnt + 1u);
    EXPECT_EQ(bottle.ends[0]->window.in_flight(), 0);
  }
}

TEST(RetryBudget, without_a_timeout_lasts_for_ever) {
  Bottle bottle({.timeout = 0});
  bottle.fate = [&](std::uint64_t) { return Fate{.dropped = bottle.now_ns < 20'000 * millisecond}; };
  post_sends(bottle, 1);
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
}

TEST(RetryBudget, begins_anew_with_each_progress) {
  Bottle bottle({.path_mtu = 256, .timeout = 8, .retry_cnt = 1});
  std::uint64_t silent_until = 0;
  bottle.fate = [&](std::uint64_t) { return Fate{.dropped = bottle.now_ns < silent_until}; };
  for (std::uint64_t i = 0; i < 5; ++i) {
    bottle.at(1 + i * 3 * millisecond, [&] {  // each costs one timeout
      silent_until = bottle.now_ns + ack_timeout_ns(8) - 1;
      post_sends(bottle, 1);
    });
  }
  bottle.run();
  EXPECT_EQ(bottle.ends[0]->completions.size(), 5u);
  EXPECT_EQ(bottle.ends[0]->requester->counts().timeouts, 5u);
  EXPECT_EQ(bottle.differences(), "");
}

// Others fill the window meanwhile.
TEST(RetryBudget, is_not_used_up_by_waiting_for_the_window) {
  constexpr std::uint32_t filled = 100'000'000;
  Bottle bottle({.timeout = 8, .retry_cnt = 1});
  bottle.fate = [&](std::uint64_t) { return Fate{.dropped = bottle.now_ns < millisecond}; };
  post_sends(bottle, 1);
  Window& window = bottle.ends[0]->window;
  bottle.at(millisecond / 2, [&] { window.sent(filled); });
  bottle.at(500 * millisecond, [&] { window.left(filled); });
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
  EXPECT_GE(bottle.now_ns, 500 * millisecond);
  EXPECT_EQ(bottle.ends[0]->requester->counts().timeouts, 1u);
}

TEST(RetryBudget, of_receives_counts_rnr_naks) {
  for (const std::uint8_t retries : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{6}}) {
    SCOPED_TRACE(int{retries});
    Bottle bottle({.rnr_retry = retries, .min_rnr_timer = 5, .receives = 0});
    post_sends(bottle, 1);
    const std::uint64_t began = bottle.now_ns;
    ASSERT_TRUE(bottle.run());
    EXPECT_EQ(bottle.ends[0]->completions, (std::vector{WcStatus::rnr_retry_exc_err}));
    EXPECT_EQ(bottle.ends[0]->requester->counts().rnr_naks, retries + 1u);
    EXPECT_GE(bottle.now_ns - began, rnr_timer_ns(5) * retries);
  }
}

TEST(RetryBudget, of_receives_is_for_ever_with_seven) {
  Bottle bottle({.rnr_retry = 7, .min_rnr_timer = 1, .receives = 0});
  post_sends(bottle, 3);
  bottle.at(500 * millisecond, [&] { bottle.ends[1]->receives_left = 3; });
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
  EXPECT_GT(bottle.ends[0]->requester->counts().rnr_naks, 100u);
}

TEST(RetryBudget, of_receives_costs_a_packet_each_time) {
  Bottle bottle({.path_mtu = 256, .rnr_retry = 7, .min_rnr_timer = 5, .receives = 0});
  for (int i = 0; i < 10; ++i)
    bottle.ends[0]->post(*bottle.ends[1], {.opcode = SendOpcode::send, .length = 1000});
  bottle.at(50 * millisecond, [&] { bottle.ends[1]->receives_left = 10; });
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
  const RequesterCounts& counts = bottle.ends[0]->requester->counts();
  EXPECT_GT(counts.rnr_naks, 100u);
  EXPECT_LE(counts.packets, 2 * 40 + counts.rnr_naks);
}

TEST(Probe, repairs_a_lost_tail_in_less_than_a_timeout) {
  Bottle bottle({.timeout = 20});
  post_sends(bottle, 1);
  bottle.run();
  post_sends(bottle, 5);
  bottle.fate = [&, first = bottle.packets](std::uint64_t n) { return Fate{.dropped = n == first + 4}; };
  const std::uint64_t began = bottle.now_ns;
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
  EXPECT_LT(bottle.now_ns - began, 5 * millisecond);
  EXPECT_EQ(bottle.ends[0]->requester->counts().timeouts, 0u);
}

TEST(Probe, costs_one_packet_when_only_the_acknowledgement_was_lost) {
  Bottle bottle({});
  post_sends(bottle, 8);
  bottle.fate = [](std::uint64_t n) { return Fate{.dropped = n == 8}; };
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
  EXPECT_EQ(bottle.ends[0]->requester->counts().retransmitted, 1u);
}

TEST(Gap, is_answered_by_one_nak) {
  Bottle bottle({});
  post_sends(bottle, 12);
  bottle.fate = [](std::uint64_t n) { return Fate{.dropped = n == 2}; };
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
  EXPECT_EQ(bottle.ends[1]->responder->counts().sequence_naks, 1u);
  EXPECT_EQ(bottle.ends[0]->requester->counts().retransmitted, 10u);
}

TEST(Acknowledgements, of_a_batch_are_one) {
  Bottle bottle({});
  post_sends(bottle, 64);
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.ends[1]->responder->counts().acks, 1u);
}

TEST(MaxRdAtomic, is_never_exceeded) {
  for (const std::uint8_t depth : {std::uint8_t{1}, std::uint8_t{3}}) {
    Bottle bottle({.max_rd_atomic = depth});
    std::uint32_t asked = 0, most = 0;
    bottle.watch = [&](std::uint32_t from, const wire::Packet& packet, auto) {
      const auto operation = static_cast<wire::Operation>(packet.bth.opcode & 31);
      if (from == 0) most = std::max(most, ++asked);
      if (from == 1 && operation == wire::Operation::atomic_acknowledge) --asked;
    };
    for (int i = 0; i < 10; ++i)
      bottle.ends[0]->post(*bottle.ends[1], {.opcode = SendOpcode::fetch_and_add,
                                             .length = 8,
                                             .local = answers_at,
                                             .remote = constant_bytes,
                                             .compare_add = 1});
    ASSERT_TRUE(bottle.run());
    EXPECT_EQ(bottle.differences(), "");
    EXPECT_EQ(most, depth);
  }
}

struct RefusalRow {
  const char* name;
  Operation operation;
  WcStatus status;
};

TEST(Refusal, fails_its_request_behind_those_before_it) {
  const RefusalRow rows[] = {
      {"a WRITE with a wrong key",
       {.opcode = SendOpcode::rdma_write, .length = 3000, .rkey = 1},
       WcStatus::rem_access_err},
      {"a READ beyond its region",
       {.opcode = SendOpcode::rdma_read,
        .length = 8,
        .local = answers_at,
        .remote = exposed_bytes - 8,
        .rkey = 7},
       WcStatus::rem_access_err},
      {"an atomic",
       {.opcode = SendOpcode::fetch_and_add, .length = 8, .local = answers_at, .rkey = 7},
       WcStatus::rem_access_err},
      {"a SEND longer than the receive",
       {.opcode = SendOpcode::send, .length = receive_bytes + 1},
       WcStatus::rem_inv_req_err},
  };
  for (const RefusalRow& row : rows) {
    SCOPED_TRACE(row.name);
    for (const bool first_is_lost : {false, true}) {
      Bottle bottle({});
      bottle.fate = [&, lost = false](std::uint64_t) mutable {
        return Fate{.dropped = first_is_lost && bottle.ends[1]->refused != 0 && !std::exchange(lost, true)};
      };
      post_sends(bottle, 2);
      bottle.ends[0]->post(*bottle.ends[1], row.operation);
      post_sends(bottle, 2);
      ASSERT_TRUE(bottle.run());
      EXPECT_EQ(bottle.ends[0]->completions, (std::vector{WcStatus::success, WcStatus::success, row.status}));
      EXPECT_TRUE(bottle.ends[0]->requester->failed());
      EXPECT_EQ(bottle.ends[0]->window.in_flight(), 0);
    }
  }
}

constexpr std::uint64_t prompt_ns = 100'000, slow_ns = 8'000'000;

TEST(Window, halves_when_something_was_lost_and_grows_again) {
  Window window({.first = 64 * 1024, .least = 8 * 1024, .most = 256 * 1024});
  window.acknowledged(64 * 1024, 0, prompt_ns);
  EXPECT_EQ(window.bytes(), 128u * 1024);
  window.lost(1'000'000, 100'000);
  window.lost(1'050'000, 100'000);
  EXPECT_EQ(window.bytes(), 64u * 1024) << "once a round trip";
  window.acknowledged(64 * 1024, 0, prompt_ns);
  EXPECT_EQ(window.bytes(), 65u * 1024) << "a packet each round trip";
  for (int i = 0; i < 10; ++i) window.lost(2'000'000 + i * 1'000'000ull, 100'000);
  EXPECT_EQ(window.bytes(), 8u * 1024);
}

TEST(Window, grows_beyond_its_limit_while_answers_are_late) {
  Window window({.first = 64 * 1024, .least = 8 * 1024, .most = 256 * 1024, .most_of_late = 1024 * 1024});
  const auto grow = [&](std::uint64_t now_ns, std::uint64_t round_trip_ns) {
    for (int i = 0; i < 8; ++i) window.acknowledged(window.bytes(), now_ns, round_trip_ns);
    return window.bytes();
  };
  EXPECT_EQ(grow(0, prompt_ns), 256u * 1024);
  EXPECT_EQ(grow(0, slow_ns), 1024u * 1024);
  EXPECT_EQ(grow(0, prompt_ns), 256u * 1024) << "the destination is prompt again";

  ASSERT_EQ(grow(0, slow_ns), 1024u * 1024);
  window.lost(1'000'000'000, slow_ns);
  EXPECT_EQ(window.bytes(), 256u * 1024) << "its buffer does not hold as much";
  EXPECT_EQ(grow(2'000'000'000, slow_ns), 256u * 1024);
  EXPECT_EQ(grow(1'000'000'000 + Window::held_down_ns, slow_ns), 1024u * 1024);
}

TEST(Turn, is_a_run_of_packets_while_others_wait) {
  Bottle bottle({});
  End& end = *bottle.ends[0];
  end.window.begin_waiting();  // another
  std::uint32_t sent = 0;
  bool asks = false;
  bottle.watch = [&](std::uint32_t from, const wire::Packet& packet, auto) {
    if (from != 0) return;
    ++sent;
    asks = packet.bth.ack_request;
  };
  for (int i = 0; i < 2; ++i)
    end.post(*bottle.ends[1], {.opcode = SendOpcode::rdma_write, .length = 70'000, .remote = constant_bytes});
  bottle.pump();
  EXPECT_EQ(sent, 0u) << "the other one came first";
  EXPECT_TRUE(end.requester->waits_for_window());
  end.requester->begin_turn();
  bottle.pump();
  EXPECT_EQ(sent, 64u);
  EXPECT_TRUE(asks) << "nothing else would open the window";
  EXPECT_TRUE(end.requester->waits_for_window());
  end.window.end_waiting();
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
}

TEST(Window, is_kept_by_what_is_on_its_way) {
  Bottle bottle({});
  std::int64_t most = 0;
  bottle.watch = [&](std::uint32_t from, const wire::Packet&, auto) {
    if (from == 0) most = std::max(most, bottle.ends[0]->window.in_flight());
  };
  bottle.ends[0]->post(*bottle.ends[1],
                       {.opcode = SendOpcode::rdma_write, .length = 70'000, .remote = constant_bytes});
  bottle.ends[0]->post(*bottle.ends[1],
                       {.opcode = SendOpcode::rdma_write, .length = 70'000, .remote = constant_bytes});
  bottle.ends[0]->post(*bottle.ends[1],
                       {.opcode = SendOpcode::rdma_write, .length = 70'000, .remote = constant_bytes});
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
  EXPECT_LE(most, Window::Limits{}.first + 1024);
  EXPECT_EQ(bottle.ends[0]->window.in_flight(), 0);
}

}  // namespace
}  // namespace weir::rnic::packet::test
