// Rate limits: when messages may be sent, on the test's own clock.
#include "errors.hpp"
#include "rnic/congestion/pacer.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::uint32_t byte_a_us = 8'000;  // in kb/s
constexpr std::uint64_t us = 1'000;
constexpr std::uint64_t long_ago = 1'000'000'000;

TEST(Pacer, spaces_messages_by_what_they_take_at_its_rate) {
  Pacer pacer;
  pacer.set({.kbps = byte_a_us, .burst_bytes = 1});
  pacer.sent(64, long_ago);
  EXPECT_EQ(pacer.due_ns(), long_ago + 63 * us);
  pacer.sent(100, pacer.due_ns());
  EXPECT_EQ(pacer.due_ns(), long_ago + 163 * us);
}

TEST(Pacer, makes_up_for_a_late_sender_but_not_for_an_idle_one) {
  Pacer pacer;
  pacer.set({.kbps = byte_a_us, .burst_bytes = 100});
  pacer.sent(100, long_ago);
  EXPECT_EQ(pacer.due_ns(), long_ago);
  pacer.sent(100, long_ago + 50 * us);
  EXPECT_EQ(pacer.due_ns(), long_ago + 100 * us) << "50 us late";
  pacer.sent(100, 2 * long_ago);
  EXPECT_EQ(pacer.due_ns(), 2 * long_ago) << "100 bytes, not a second's worth";
}

TEST(Pacer, holds_its_rate_from_the_slowest_to_the_fastest) {
  for (const std::uint32_t kbps : {1'000u, 1'000'000u, 100'000'000u}) {
    Pacer pacer;
    pacer.set({.kbps = kbps});
    constexpr std::uint64_t bytes = 2'147'483'648;
    pacer.sent(bytes, long_ago);
    const std::uint64_t took = pacer.due_ns() - (long_ago - Pacer::shortest_burst_ns);
    EXPECT_EQ(took, bytes * 8'000'000 / kbps) << kbps;
  }
}

TEST(Pacer, takes_the_slower_of_its_limit_and_the_path_of_a_message) {
  struct Row {
    std::uint32_t limit_kbps, path_kbps, slower_kbps;
  };
  for (const Row& row :
       {Row{8'000, 0, 8'000}, Row{0, 8'000, 8'000}, Row{8'000, 4'000, 4'000}, Row{4'000, 8'000, 4'000}}) {
    SCOPED_TRACE(testing::Message() << row.limit_kbps << " " << row.path_kbps);
    Pacer pacer;
    pacer.set({.kbps = row.limit_kbps});
    EXPECT_TRUE(pacer.limits(row.path_kbps));
    pacer.sent(1000, long_ago, row.path_kbps);
    EXPECT_EQ(pacer.due_ns(), long_ago - Pacer::shortest_burst_ns + 1000 * 8'000'000ull / row.slower_kbps);
  }
  EXPECT_FALSE(Pacer().limits(0));
}

class RateLimits : public Errors {
 protected:
  RateLimits() { host.advance(long_ago); }

  void limit(RateLimit rate) {
    a->attributes().rate = rate;
    ASSERT_TRUE(a->modify(QpState::rts));
  }
  // WRITEs of 100 bytes with the ids from `first` on.
  void write(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t id = first; id < first + count; ++id)
      ASSERT_EQ(a->write(id, from.all(), to.addr(), to.key()), PostResult::ok);
  }
  std::uint64_t sent_bytes() {
    return a->qp().counters().payload[static_cast<std::size_t>(PayloadGoes::out)].read();
  }
  std::size_t done() { return Endpoint::drain(a->send_cq()).size(); }

  void SetUp() override { connect_pair(); }
  Memory from{a_nic, 100}, to{b_nic, 100};
};

TEST_F(RateLimits, messages_go_when_they_are_due_without_anybody_polling) {
  limit({.kbps = byte_a_us, .burst_bytes = 100});
  write(0, 10);
  EXPECT_EQ(done(), 2u) << "the burst, and the one that is due now";
  for (int i = 0; i < 8; ++i) {
    host.advance(99 * us);
    const std::uint64_t before = sent_bytes();
    host.advance(us);
    EXPECT_EQ(sent_bytes(), before + 100);
  }
  EXPECT_EQ(done(), 8u);
}

TEST_F(RateLimits, what_nobody_limits_goes_at_once) {
  limit({});
  write(0, 10);
  EXPECT_EQ(done(), 10u);
}

TEST_F(RateLimits, a_limit_that_is_lifted_lets_go_of_what_waited) {
  limit({.kbps = byte_a_us, .burst_bytes = 100});
  write(0, 10);
  EXPECT_EQ(done(), 2u);
  limit({});
  EXPECT_EQ(done(), 8u);
}

TEST_F(RateLimits, data_that_comes_back_is_not_of_the_senders_rate) {
  limit({.kbps = byte_a_us, .burst_bytes = 100});
  for (std::uint64_t id = 0; id < 10; ++id)
    ASSERT_EQ(a->read(id, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_EQ(done(), 10u);
}

TEST_F(RateLimits, an_error_flushes_what_waits_for_its_turn) {
  limit({.kbps = byte_a_us, .burst_bytes = 100});
  write(0, 4);
  ASSERT_TRUE(a->modify(QpState::err));
  for (std::uint64_t id = 0; id < 4; ++id)
    EXPECT_TRUE(completed(a->poll_send(), id, id < 2 ? WcStatus::success : WcStatus::wr_flush_err));
}

TEST_F(RateLimits, a_queue_that_only_waits_for_its_turn_has_drained) {
  limit({.kbps = byte_a_us, .burst_bytes = 100});
  write(0, 4);
  ASSERT_TRUE(a->modify(QpState::sqd));
  EXPECT_FALSE(a->qp().draining());
  host.advance(long_ago);
  EXPECT_EQ(done(), 2u) << "those behind it wait for rts";
  ASSERT_TRUE(a->modify(QpState::rts));
  EXPECT_EQ(done(), 2u);
}

TEST_F(RateLimits, a_timer_that_comes_while_a_poll_retries_is_not_lost) {
  limit({.kbps = byte_a_us, .burst_bytes = 100});
  write(0, 3);
  EXPECT_EQ(done(), 2u) << "the third waits, and its timer is set";
  // The poll takes the queue from the list of those that wait, and looks at the clock just before it is due.
  host.advance(100 * us - 1);
  a_nic.behind_clock = [&] { host.advance_in_vain(1); };
  EXPECT_EQ(done(), 0u);
  host.advance(long_ago);
  EXPECT_EQ(done(), 1u);
}

TEST_F(RateLimits, waiting_for_ones_turn_is_no_retry) {
  limit({.kbps = byte_a_us, .burst_bytes = 100});
  write(0, 10);
  host.advance(10 * 100 * us);
  EXPECT_EQ(done(), 10u);
  EXPECT_EQ(a->qp().counters().retries.read(), 0u);
  EXPECT_EQ(a->qp().counters().no_responses.read(), 0u);
}

// Unreliable connections: a lost message is not reported.
struct Loss {
  const char* name;
  void (*cause)(Host&, Nic& away, Endpoint& target);
  std::size_t receive_bytes;  // 0: none posted
};
class LostMessages : public RateLimits, public testing::WithParamInterface<Loss> {
 protected:
  void SetUp() override {
    EndpointOptions uc;
    uc.type = QpType::uc;
    connect_pair(uc);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Because, LostMessages,
    testing::Values(Loss{"no_receive", [](Host&, Nic&, Endpoint&) {}, 0},
                    Loss{"receive_too_short", [](Host&, Nic&, Endpoint&) {}, 10},
                    Loss{"target_in_reset",
                         [](Host&, Nic&, Endpoint& target) { target.modify(QpState::reset); }, 0},
                    Loss{"peer_killed", [](Host& host, Nic& away, Endpoint&) { host.kill(away); }, 0}),
    [](const auto& param_info) { return param_info.param.name; });

TEST_P(LostMessages, take_of_the_rate_what_those_take_that_arrive) {
  limit({.kbps = byte_a_us, .burst_bytes = 100});
  if (GetParam().receive_bytes != 0) {
    ASSERT_EQ(b->recv(1, {to.sge(0, GetParam().receive_bytes)}), PostResult::ok);
  }
  GetParam().cause(host, b_nic, *b);
  for (std::uint64_t id = 0; id < 5; ++id) ASSERT_EQ(a->send(id, from.all()), PostResult::ok);
  EXPECT_EQ(done(), 2u) << "the burst, and the one that is due now";
  for (int i = 0; i < 3; ++i) {
    host.advance(99 * us);
    EXPECT_EQ(done(), 0u);
    host.advance(us);
    EXPECT_EQ(done(), 1u);
  }
  EXPECT_FALSE(b->poll_recv());
}

// A datagram's static rate, from its address handle.
class DatagramRates : public TwoNics {
 protected:
  DatagramRates() {
    host.advance(long_ago);
    sender.to_rts(Qpn());
    receiver.to_rts(Qpn());
  }
  void send(std::uint64_t id, std::uint32_t path_kbps) {
    const SendRequest request{.wr_id = id,
                              .flags = send_flag::signaled,
                              .datagram = {receiver.qpn(), sender.attributes().qkey, nullptr},
                              .path_kbps = path_kbps};
    ASSERT_EQ(sender.post(request, {from.all()}), PostResult::ok);
  }
  std::size_t done() { return Endpoint::drain(sender.send_cq()).size(); }
  // At a byte a microsecond a message takes as long as the burst.
  static constexpr std::size_t bytes = Pacer::shortest_burst_ns / us;
  Endpoint sender{a_nic, {.type = QpType::ud}}, receiver{b_nic, {.type = QpType::ud}};
  Memory from{a_nic, bytes};
};

TEST_F(DatagramRates, are_held_between_messages) {
  for (std::uint64_t id = 0; id < 5; ++id) send(id, byte_a_us);
  EXPECT_EQ(done(), 2u) << "the burst, and the one that is due now";
  for (int i = 0; i < 3; ++i) {
    host.advance(bytes * us - 1);
    EXPECT_EQ(done(), 0u);
    host.advance(1);
    EXPECT_EQ(done(), 1u);
  }
}

TEST_F(DatagramRates, are_those_of_each_message) {
  for (std::uint64_t id = 0; id < 10; ++id) send(id, 0);
  EXPECT_EQ(done(), 10u);
  send(0, byte_a_us);
  send(1, byte_a_us / 2);
  send(2, 0);
  EXPECT_EQ(done(), 2u);
  host.advance(2 * bytes * us - 1);
  EXPECT_EQ(done(), 0u) << "behind the slow one";
  host.advance(1);
  EXPECT_EQ(done(), 1u);
}

TEST_F(DatagramRates, of_what_was_sent_before_a_reset_are_forgotten) {
  for (std::uint64_t id = 0; id < 5; ++id) send(id, byte_a_us);
  ASSERT_TRUE(sender.modify(QpState::reset));
  sender.to_rts(Qpn());
  send(7, byte_a_us);
  EXPECT_TRUE(completed(sender.poll_send(), 7));
}

}  // namespace
}  // namespace weir::rnic::test
