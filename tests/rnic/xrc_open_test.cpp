// XRC queue pairs that are open in several processes.
#include <chrono>
#include <future>

#include "xrc_ends.hpp"

namespace weir::rnic::test {
namespace {

// A sender on a, a target made by b, which c has open, and an SRQ on c.
class XrcOpen : public TwoNics {
 protected:
  QueuePair* open(std::uint64_t xrcd = xrc_domain) {
    return c_nic.adapter().open_qp(pair.target->qpn(), xrcd);
  }
  void close_at_home() { b_nic.adapter().destroy(std::exchange(pair.target, nullptr)); }
  void close(QueuePair* opened) {
    c_nic.adapter().destroy(opened);
    settle();
  }
  // Whether a message gets through.
  WcStatus send() {
    receiver.post(5, into.all());
    EXPECT_EQ(pair.post({.wr_id = 1}, receiver.srq->number(), {from.all()}), PostResult::ok);
    host.advance(1'000'000'000);
    const auto sent = pair.poll();
    const auto received = receiver.poll();
    EXPECT_TRUE(sent);
    EXPECT_EQ(received.has_value(), sent && sent->status == WcStatus::success);
    return sent ? sent->status : WcStatus::success;
  }

  Nic& c_nic{host.add_nic()};
  XrcReceiver receiver{c_nic};
  Memory from{a_nic, 64}, into{c_nic, 64};
  XrcPair pair{a_nic, b_nic};
};

TEST_F(XrcOpen, it_lives_while_another_process_has_it_open) {
  QueuePair* const opened = open();
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(opened->qpn(), pair.target->qpn());
  EXPECT_EQ(opened->state(), QpState::rts);
  close_at_home();
  EXPECT_EQ(send(), WcStatus::success);
  close(opened);
  EXPECT_EQ(send(), WcStatus::retry_exc_err);
}

// The news that it was closed comes by the thread that hears all else: it ends at once.
TEST_F(XrcOpen, its_end_waits_for_nobody_whose_message_is_under_way) {
  QueuePair* const opened = open();
  const std::uint32_t index = pair.target->qpn().index();
  SegmentHeader& home = b_nic.adapter().segment().header();
  close_at_home();
  home.qps[index].hazard.store(1);  // inside, and stands still
  std::future<void> closed = std::async(std::launch::async, [&] { close(opened); });
  EXPECT_EQ(closed.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  home.qps[index].hazard.store(2);
  closed.get();
  EXPECT_EQ(home.qp_exists[index].load(), 0u);
}

TEST_F(XrcOpen, it_lives_on_when_another_process_closes_it) {
  close(open());
  EXPECT_EQ(send(), WcStatus::success);
}

TEST_F(XrcOpen, who_is_killed_has_nothing_open) {
  QueuePair* const opened = open();
  ASSERT_NE(opened, nullptr);
  ASSERT_NE(b_nic.peer(c_nic.slot(), HostPort::Wait::no), nullptr);
  const Qpn number = pair.target->qpn();
  close_at_home();
  host.kill(c_nic);
  settle();
  EXPECT_EQ(b_nic.adapter().open_qp(number, xrc_domain), nullptr);
  EXPECT_EQ(b_nic.adapter().segment().header().qp_exists[number.index()].load(), 0u);
  close(opened);  // only its memory is left
}

TEST_F(XrcOpen, its_home_opens_it_again) {
  const Qpn number = pair.target->qpn();
  QueuePair* const opened = open();
  close_at_home();
  pair.target = b_nic.adapter().open_qp(number, xrc_domain);
  ASSERT_NE(pair.target, nullptr);
  EXPECT_EQ(b_nic.adapter().open_qp(number, xrc_domain), nullptr) << "it has a handle";
  close(opened);
  EXPECT_EQ(send(), WcStatus::success);
}

TEST_F(XrcOpen, what_is_not_there_is_not_opened) {
  Endpoint plain(b_nic);
  EXPECT_EQ(open(xrc_domain + 1), nullptr) << "another domain";
  for (const Qpn number : {plain.qpn(), pair.sender->qpn(), Qpn(b_nic.slot(), 999), Qpn(77, 2), Qpn()}) {
    SCOPED_TRACE(number.value());
    EXPECT_EQ(c_nic.adapter().open_qp(number, xrc_domain), nullptr);
  }
  const Qpn gone = pair.target->qpn();
  close_at_home();
  EXPECT_EQ(c_nic.adapter().open_qp(gone, xrc_domain), nullptr);
}

TEST_F(XrcOpen, who_has_it_open_may_modify_it) {
  QueuePair* const opened = open();
  for (const QpState state : {QpState::reset, QpState::init, QpState::rtr, QpState::rts})
    ASSERT_TRUE(opened->modify(state, {.destination = pair.sender->qpn(), .min_rnr_timer = 12}));
  EXPECT_EQ(pair.target->state(), QpState::rts);
  EXPECT_EQ(send(), WcStatus::success);
  EXPECT_EQ(pair.target->shared_attributes().destination, pair.sender->qpn());
  ASSERT_TRUE(opened->modify(QpState::err, {}));
  EXPECT_EQ(pair.target->state(), QpState::err);
  close(opened);
}

TEST_F(XrcOpen, it_outlives_the_process_that_made_it) {
  QueuePair* const opened = open();
  ASSERT_NE(a_nic.peer(b_nic.slot(), HostPort::Wait::no), nullptr);
  host.kill(b_nic);
  settle();
  EXPECT_TRUE(a_nic.async_events().empty());
  EXPECT_EQ(send(), WcStatus::success);
  host.replace(b_nic);
  EXPECT_EQ(send(), WcStatus::success);
  EXPECT_EQ(c_nic.adapter().open_qp(opened->qpn(), xrc_domain), nullptr) << "nobody else can find it";
  close(opened);
  EXPECT_EQ(send(), WcStatus::retry_exc_err);
}

TEST_F(XrcOpen, who_waits_for_a_receive_waits_on_when_the_process_that_made_it_ends) {
  QueuePair* const opened = open();
  ASSERT_EQ(pair.post({.wr_id = 1}, receiver.srq->number(), {from.all()}), PostResult::ok);
  EXPECT_FALSE(pair.poll());
  host.kill(b_nic);
  settle();
  EXPECT_FALSE(pair.poll());
  receiver.post(5, into.all());
  settle();
  EXPECT_EQ(pair.cq->unpolled(), 1u);
  EXPECT_TRUE(completed(pair.poll(), 1));
  EXPECT_TRUE(completed(receiver.poll(), 5));
  close(opened);
}

TEST_F(XrcOpen, who_waits_for_a_receive_is_told_when_the_only_process_that_had_it_open_ends) {
  for (const std::uint64_t id : {1, 2})
    ASSERT_EQ(pair.post({.wr_id = id}, receiver.srq->number(), {from.all()}), PostResult::ok);
  EXPECT_FALSE(pair.poll());
  host.kill(b_nic);
  settle();
  EXPECT_TRUE(completed(pair.poll(), 1, WcStatus::retry_exc_err));
  EXPECT_TRUE(completed(pair.poll(), 2, WcStatus::wr_flush_err));
}

TEST_F(XrcOpen, it_ends_with_the_last_process_that_has_it_open) {
  Nic& d_nic = host.add_nic();
  XrcReceiver other(d_nic);
  Memory into_d(d_nic, 64);
  QueuePair* const opened = open();
  ASSERT_NE(c_nic.peer(b_nic.slot(), HostPort::Wait::no), nullptr);
  host.kill(b_nic);
  settle();
  other.post(6, into_d.all());
  ASSERT_EQ(pair.post({.wr_id = 1}, other.srq->number(), {from.all()}), PostResult::ok);
  EXPECT_TRUE(completed(pair.poll(), 1));
  EXPECT_TRUE(completed(other.poll(), 6));
  host.kill(c_nic);
  settle();
  host.replace(c_nic);  // it has nothing open
  other.post(7, into_d.all());
  ASSERT_EQ(pair.post({.wr_id = 2}, other.srq->number(), {from.all()}), PostResult::ok);
  EXPECT_TRUE(completed(pair.poll(), 2, WcStatus::retry_exc_err));
  EXPECT_FALSE(other.poll());
  close(opened);  // only its memory is left
}

TEST_F(XrcOpen, whoever_keeps_it_takes_its_errors) {
  QueuePair* const opened = open();
  host.kill(b_nic);
  settle();
  ASSERT_EQ(pair.post({.wr_id = 1}, Qpn(c_nic.slot(), 999), {from.all()}), PostResult::ok);
  EXPECT_TRUE(completed(pair.poll(), 1, WcStatus::rem_inv_req_err));
  settle();
  EXPECT_EQ(opened->state(), QpState::err);
  const auto events = c_nic.async_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].qp, opened);
  close(opened);
}

TEST_F(XrcOpen, all_who_have_it_open_hear_of_its_fault) {
  QueuePair* const opened = open();
  ASSERT_EQ(pair.post({.wr_id = 1}, Qpn(b_nic.slot(), 999), {from.all()}), PostResult::ok);
  settle();
  for (Nic* nic : {&b_nic, &c_nic}) {
    const auto events = nic->async_events();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].event, AsyncEvent::qp_request_error);
    EXPECT_EQ(events[0].qp, nic == &b_nic ? pair.target : opened);
  }
  close(opened);
}

// Whatever its home writes over what is shared.
TEST_F(XrcOpen, nonsense_in_its_context_is_none_to_open) {
  QpContext& context = b_nic.adapter().segment().header().qps[pair.target->qpn().index()];
  for (const std::uint64_t nonsense :
       {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{0xffff'ffff'ffff'f000}}) {
    const std::uint64_t before = std::exchange(context.openers_offset, nonsense);
    EXPECT_EQ(open(), nullptr);
    context.openers_offset = before;
  }
}

}  // namespace
}  // namespace weir::rnic::test
