// Shared receive queues: many queue pairs, order, limit events, and receives that a killed sender had taken.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

class SharedReceives : public TwoNics {
 protected:
  void make(std::uint32_t wrs, std::size_t pairs, const EndpointOptions& sender = {}) {
    srq = b_nic.adapter().create_srq(pd, wrs, 2);
    ASSERT_NE(srq, nullptr);
    cq = b_nic.adapter().create_cq(1024, 0);
    for (std::size_t i = 0; i < pairs; ++i) add_pair(a_nic, sender);
  }
  void add_pair(Nic& sender_nic, const EndpointOptions& sender = {}) {
    senders.push_back(std::make_unique<Endpoint>(sender_nic, sender));
    receivers.push_back(std::make_unique<Endpoint>(b_nic, EndpointOptions{.srq = srq, .cq = cq}));
    connect(*senders.back(), *receivers.back());
  }
  ~SharedReceives() override {
    receivers.clear();
    if (srq != nullptr) b_nic.adapter().destroy(srq);
    if (cq != nullptr) b_nic.adapter().destroy(cq);
  }
  SharedReceiveQueue::Posted post(std::uint64_t id, std::vector<Sge> sges = {}) {
    const auto posted = srq->post(id, sges);
    if (srq->take_parked()) b_nic.adapter().kick_all_parked_on(*srq);
    return posted;
  }
  std::optional<WorkCompletion> poll() { return Endpoint::poll(*cq); }

  static constexpr auto ok = SharedReceiveQueue::Posted::ok;
  static constexpr auto full = SharedReceiveQueue::Posted::full;
  SharedReceiveQueue* srq = nullptr;
  CompletionQueue* cq = nullptr;
  std::vector<std::unique_ptr<Endpoint>> senders, receivers;
  Memory from{a_nic, 64};
  Memory to{b_nic, 65536};
};

TEST_F(SharedReceives, any_queue_pair_takes_the_oldest) {
  make(16, 4);
  for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(post(id, {to.sge(id, 1)}), ok);
  from.fill(3);
  const std::size_t order[] = {2, 0, 3, 3, 1, 0, 2, 1};
  for (std::uint64_t id = 0; id < 8; ++id) {
    ASSERT_EQ(senders[order[id]]->send(1, from.sge(id, 1)), PostResult::ok);
    const auto wc = poll();
    ASSERT_TRUE(completed(wc, id));
    EXPECT_EQ(wc->qpn, receivers[order[id]]->qpn().value());
  }
  EXPECT_EQ(to.part(0, 8), from.part(0, 8));
}

TEST_F(SharedReceives, holds_as_many_as_asked_for_over_many_laps) {
  make(5, 1);
  for (int lap = 0; lap < 50; ++lap) {
    for (std::uint64_t id = 0; id < 5; ++id) ASSERT_EQ(post(id, {to.sge(id, 1)}), ok) << "lap " << lap;
    EXPECT_EQ(post(9), full);
    for (std::uint64_t id = 0; id < 5; ++id) {
      ASSERT_EQ(senders[0]->send(1, from.sge(0, 1)), PostResult::ok);
      ASSERT_TRUE(completed(senders[0]->poll_send(), 1));
      ASSERT_TRUE(completed(poll(), id));
    }
    EXPECT_FALSE(poll());
  }
}

TEST_F(SharedReceives, entries_are_free_again_in_the_order_they_complete_not_in_the_order_posted) {
  make(4, 2);
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(post(id, {to.sge(id, 1)}), ok);
  ASSERT_EQ(senders[0]->send(1, from.sge(0, 1)), PostResult::ok);  // takes 0, not polled yet
  ASSERT_EQ(senders[1]->send(1, from.sge(0, 1)), PostResult::ok);  // takes 1
  WorkCompletion wc;
  ASSERT_EQ(receivers[1]->qp().poll_completions(*cq, {&wc, 1}), 1u);
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_EQ(post(4, {to.sge(0, 1)}), ok);
  EXPECT_EQ(post(5, {to.sge(0, 1)}), full);
  ASSERT_EQ(senders[1]->send(1, from.sge(0, 1)), PostResult::ok);
  ASSERT_EQ(senders[1]->send(1, from.sge(0, 1)), PostResult::ok);
  ASSERT_EQ(senders[1]->send(1, from.sge(0, 1)), PostResult::ok);
  std::vector<std::uint64_t> ids;
  while (auto polled = poll()) ids.push_back(polled->wr_id);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{0, 2, 3, 4}));
}

TEST_F(SharedReceives, an_empty_one_makes_its_senders_wait_and_a_post_wakes_them) {
  make(16, 3);
  for (auto& sender : senders) ASSERT_EQ(sender->send(1, from.sge(0, 1)), PostResult::ok);
  EXPECT_FALSE(poll());
  for (std::uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(post(id, {to.sge(id, 1)}), ok);
    settle();
    EXPECT_TRUE(completed(poll(), id));
    EXPECT_FALSE(poll());
  }
  for (auto& sender : senders) EXPECT_TRUE(completed(sender->poll_send(), 1));
}

TEST_F(SharedReceives, rnr_retries_end_when_nobody_posts) {
  make(16, 1, {.rnr_retry = 2});
  ASSERT_EQ(senders[0]->send(1, from.sge(0, 1)), PostResult::ok);
  host.advance(10'000'000);
  EXPECT_TRUE(completed(senders[0]->poll_send(), 1, WcStatus::rnr_retry_exc_err));
}

TEST_F(SharedReceives, the_limit_event_comes_once_when_fewer_are_left) {
  make(16, 2);
  for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(post(id, {to.sge(id, 1)}), ok);
  srq->context().limit.store(6);
  const auto consume = [&] {
    EXPECT_EQ(senders[0]->send(1, from.sge(0, 1)), PostResult::ok);
    settle();
    return b_nic.async_events();
  };
  EXPECT_TRUE(consume().empty()) << "7 left";
  EXPECT_TRUE(consume().empty()) << "6 left: not below the limit";
  const auto events = consume();
  ASSERT_EQ(events.size(), 1u) << "5 left";
  EXPECT_EQ(events[0].event, AsyncEvent::srq_limit_reached);
  EXPECT_EQ(events[0].srq, srq);
  EXPECT_EQ(srq->context().limit.load(), 0u) << "the event disarms the limit";
  EXPECT_TRUE(consume().empty());
}

TEST_F(SharedReceives, payloads_of_every_kind_arrive_over_several_sges) {
  make(16, 1);
  Memory big(a_nic, 40'000);
  big.fill(5);
  for (const std::size_t size : {std::size_t{0}, std::size_t{36}, std::size_t{37}, std::size_t{8192},
                                 std::size_t{8193}, std::size_t{40'000}}) {
    to.clear();
    ASSERT_EQ(post(1, {to.sge(0, 20), to.sge(20, 60'000)}), ok);
    ASSERT_EQ(senders[0]->send(1, big.sge(0, size)), PostResult::ok);
    ASSERT_TRUE(completed(senders[0]->poll_send(), 1));
    const auto wc = poll();
    ASSERT_TRUE(completed(wc, 1));
    EXPECT_EQ(wc->byte_len, size);
    EXPECT_EQ(to.part(0, size), big.part(0, size));
  }
}

TEST_F(SharedReceives, a_queue_pair_in_error_reports_its_last_wqe_and_leaves_the_others_alone) {
  make(16, 2);
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(post(id, {to.sge(id, 1)}), ok);
  receivers[0]->modify(QpState::err);
  const auto events = b_nic.async_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event, AsyncEvent::qp_last_wqe_reached);
  EXPECT_EQ(events[0].qp, &receivers[0]->qp());
  EXPECT_FALSE(poll()) << "receives of an SRQ are not flushed by one of its queue pairs";
  ASSERT_EQ(senders[1]->send(1, from.sge(0, 1)), PostResult::ok);
  EXPECT_TRUE(completed(poll(), 0));
}

TEST_F(SharedReceives, more_arrivals_than_one_queue_pair_can_hold_unpolled_wait) {
  make(2000, 1, {.caps = {.max_send_wr = 2000, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}});
  for (std::uint64_t id = 0; id < 2000; ++id) ASSERT_EQ(post(id, {to.sge(0, 1)}), ok);
  for (std::uint64_t id = 0; id < 2000; ++id)
    ASSERT_EQ(senders[0]->send(id, from.sge(0, 1), 0), PostResult::ok);
  std::uint64_t next = 0;
  for (bool more = true; more;) {
    while (auto wc = poll()) ASSERT_TRUE(completed(wc, next++));
    more = host.pump();
  }
  EXPECT_EQ(next, 2000u);
}

// A sender killed between taking a receive and completing it leaves a hole that only its end reveals.
TEST_F(SharedReceives, what_a_killed_sender_had_taken_is_posted_again) {
  make(4, 1);
  Nic& victim = host.add_nic();
  add_pair(victim);
  Memory payload(victim, 20'000);
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(post(id, {to.all()}), ok);
  // The copy never returns a result to a dead process; what follows in it does not happen.
  host.on_copy = [] { return Peer::Transfer::gone; };
  ASSERT_EQ(senders[1]->send(1, payload.all()), PostResult::ok);
  host.on_copy = nullptr;
  host.kill(victim);
  settle();
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(senders[0]->send(1, from.sge(0, 1)), PostResult::ok);
    settle();
    const auto wc = poll();
    ASSERT_TRUE(wc) << "receive lost";
    ids.push_back(wc->wr_id);
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

// Its bytes did not come over, and it does not try again.
TEST_F(SharedReceives, what_a_send_that_is_given_up_had_taken_is_posted_again) {
  make(4, 2);
  Memory payload(a_nic, 20'000);
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(post(id, {to.all()}), ok);
  host.on_copy = [] { return Peer::Transfer::refused; };
  ASSERT_EQ(senders[1]->send(1, payload.all()), PostResult::ok);
  host.advance(1'000'000'000);
  EXPECT_TRUE(completed(senders[1]->poll_send(), 1, WcStatus::retry_exc_err));
  host.on_copy = nullptr;
  settle();
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(senders[0]->send(1, from.sge(0, 1)), PostResult::ok);
    const auto wc = poll();
    ASSERT_TRUE(wc) << "receive lost";
    ids.push_back(wc->wr_id);
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  ASSERT_EQ(senders[0]->send(1, from.sge(0, 1)), PostResult::ok);
  EXPECT_FALSE(poll()) << "a receive came twice";
}

TEST_F(SharedReceives, a_receive_that_another_has_or_of_an_srq_before_is_not_taken_back) {
  make(2, 1);
  for (std::uint64_t id = 0; id < 2; ++id) ASSERT_EQ(post(id, {to.all()}), ok);
  const Peer::TakenFrom mine{srq->index(), srq->context().incarnation, 0};
  ASSERT_EQ(senders[0]->send(1, from.all()), PostResult::ok);  // takes it, and completes
  Adapter& adapter = b_nic.adapter();
  adapter.receive_returned(a_nic.slot(), mine);
  adapter.receive_returned(b_nic.slot(), mine);
  adapter.receive_returned(a_nic.slot(), {mine.srq_index, mine.incarnation - 1, 0});
  adapter.receive_returned(a_nic.slot(), {mine.srq_index, mine.incarnation, 1});  // posted, not taken
  adapter.receive_returned(a_nic.slot(), {mine.srq_index, mine.incarnation, 12345});
  adapter.receive_returned(a_nic.slot(), {mine.srq_index + 1, mine.incarnation, 0});
  EXPECT_TRUE(completed(poll(), 0));
  ASSERT_EQ(senders[0]->send(2, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(poll(), 1));
  ASSERT_EQ(senders[0]->send(3, from.all()), PostResult::ok);
  EXPECT_FALSE(poll());
}

// As it stands where the sender is killed between the completion and the wake-up.
TEST_F(SharedReceives, a_completion_that_nobody_was_woken_for_is_announced_when_its_writer_ends) {
  srq = b_nic.adapter().create_srq(pd, 4, 2);
  cq = b_nic.adapter().create_cq(1024, 9);
  Nic& victim = host.add_nic();
  add_pair(victim);
  Memory payload(victim, 64);
  ASSERT_EQ(post(0, {to.all()}), ok);
  ASSERT_EQ(senders[0]->send(1, payload.all()), PostResult::ok);
  cq->arm(Armed::next);
  EXPECT_EQ(b_nic.channel_events(9), 0);
  host.kill(victim);
  settle();
  EXPECT_EQ(b_nic.channel_events(9), 1);
  EXPECT_TRUE(completed(poll(), 0));
  senders.clear();
}

TEST_F(SharedReceives, what_a_killed_sender_had_completed_is_delivered_and_not_posted_again) {
  make(4, 1);
  Nic& victim = host.add_nic();
  add_pair(victim);
  Memory payload(victim, 64);
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(post(id, {to.all()}), ok);
  ASSERT_EQ(senders[1]->send(1, payload.all()), PostResult::ok);
  ASSERT_EQ(senders[1]->send(2, payload.all()), PostResult::ok);
  host.kill(victim);
  settle();
  EXPECT_TRUE(completed(poll(), 0));
  EXPECT_TRUE(completed(poll(), 1));
  ASSERT_EQ(senders[0]->send(1, from.sge(0, 1)), PostResult::ok);
  ASSERT_EQ(senders[0]->send(2, from.sge(0, 1)), PostResult::ok);
  EXPECT_TRUE(completed(poll(), 2));
  EXPECT_TRUE(completed(poll(), 3));
  ASSERT_EQ(senders[0]->send(3, from.sge(0, 1)), PostResult::ok);
  EXPECT_FALSE(poll()) << "a receive came twice";
}

}  // namespace
}  // namespace weir::rnic::test
