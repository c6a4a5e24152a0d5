// Ends and beginnings: reset and reuse, destruction and deregistration while a peer works on the object.
#include <sched.h>

#include <chrono>
#include <future>
#include <thread>

#include "tests/give_others_time.hpp"
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

class Lifetime : public TwoNics {
 protected:
  void TearDown() override { release(); }

  // Has `a` begin a WRITE to b's memory that stays inside its copy until release().
  void begin_write(Memory& from, Memory& to) {
    begin([this, &from, &to] { (void)a->write(1, from.all(), to.addr(), to.key()); });
  }
  // The same of any request that copies.
  void begin(std::function<void()> post) {
    host.on_copy = [this] {
      inside = true;
      inside.notify_all();
      released.wait(false);
      return Peer::Transfer::done;
    };
    writer = std::thread(std::move(post));
    inside.wait(false);
  }
  void release() {
    released = true;
    released.notify_all();
    if (writer.joinable()) writer.join();
  }
  // Runs `wait`, which must not come back before the write is over.
  template <class Wait>
  void expect_waits_for_the_write(Wait wait) {
    std::atomic<bool> begun = false, returned = false;
    std::thread waiter([&] {
      begun = true;
      wait();
      returned = true;
    });
    while (!begun) sched_yield();
    give_others_time();
    EXPECT_FALSE(returned) << "came back while a peer was writing";
    release();
    waiter.join();
  }

  // Runs `wait` until it gives up on a writer that is stopped: hours pass.
  template <class Wait>
  void run_while_time_passes(Wait wait) {
    std::atomic<bool> returned = false;
    std::thread waiter([&] {
      wait();
      returned = true;
    });
    while (!returned) {
      host.advance(3'600'000'000'000);
      sched_yield();
    }
    waiter.join();
  }

  // Runs `wait`, which waits for the writer once `waits` is so; what comes from outside must be heard
  // meanwhile.
  template <class Wait, class Waits>
  void expect_holds_up_nothing(Wait wait, Waits waits, Qpn kicked) {
    std::thread waiter(wait);
    while (!waits()) sched_yield();
    give_others_time();  // until it has come to waiting
    std::future<void> heard = std::async(std::launch::async, [&] {
      b_nic.adapter().kicked(kicked);
      b_nic.adapter().faulted(kicked, Fault::access);
      b_nic.adapter().peer_gone(77);
    });
    EXPECT_EQ(heard.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    release();
    waiter.join();
  }
  QpState state_of(Qpn qp) {
    return static_cast<QpState>(b_nic.adapter().segment().header().qps[qp.index()].state.load());
  }

  std::atomic<bool> inside = false, released = false;
  std::thread writer;
};

TEST_F(Lifetime, deregistration_waits_for_a_peer_that_is_writing) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  begin_write(from, to);
  expect_waits_for_the_write([&] { to.deregister(); });
}

TEST_F(Lifetime, deregistration_waits_for_a_peer_that_is_sending_into_it) {
  connect_pair();
  Memory from(a_nic, 20'000), to(b_nic, 20'000);
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  begin([&] { (void)a->send(1, from.all()); });
  expect_waits_for_the_write([&] { to.deregister(); });
}

// Or a process that is stopped inside its operation would hold up everybody else.
TEST_F(Lifetime, deregistration_does_not_wait_for_a_peer_that_is_writing_elsewhere) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64), other(b_nic, 64);
  begin_write(from, to);
  other.deregister();
  release();  // before its memory goes
}

TEST_F(Lifetime, deregistration_does_not_wait_for_a_peer_that_is_sending_elsewhere) {
  connect_pair();
  Memory from(a_nic, 20'000), to(b_nic, 20'000), other(b_nic, 64);
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  begin([&] { (void)a->send(1, from.all()); });
  other.deregister();
  release();
}

TEST_F(Lifetime, deregistration_after_a_destruction_waits_only_for_who_sends_into_it) {
  connect_pair();
  Memory from(a_nic, 20'000), to(b_nic, 20'000), other(b_nic, 64);
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  begin([&] { (void)a->send(1, from.all()); });
  run_while_time_passes([&] { b->destroy_qp(); });
  other.deregister();
  expect_waits_for_the_write([&] { to.deregister(); });
}

// It may wait until that peer is killed, and the news of that comes by the thread that hears all else.
TEST_F(Lifetime, deregistration_that_waits_holds_up_nothing_else) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  begin_write(from, to);
  expect_holds_up_nothing([&] { to.deregister(); },
                          [&] { return b_nic.adapter().table().entry(to.key()).key == 0; }, b->qpn());
}

TEST_F(Lifetime, destruction_that_waits_holds_up_nothing_else) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  const Qpn number = b->qpn();
  begin_write(from, to);
  expect_holds_up_nothing([&] { b->destroy_qp(); }, [&] { return state_of(number) == QpState::reset; },
                          number);
  EXPECT_TRUE(b_nic.async_events().empty()) << "it is being destroyed";
}

TEST_F(Lifetime, error_and_reset_that_wait_hold_up_nothing_else) {
  for (const QpState to : {QpState::err, QpState::reset}) {
    SCOPED_TRACE(static_cast<int>(to));
    released = inside = false;
    connect_pair();
    Memory from(a_nic, 64), to_memory(b_nic, 64);
    begin_write(from, to_memory);
    expect_holds_up_nothing([&] { b->modify(to, {}); }, [&] { return state_of(b->qpn()) == to; }, b->qpn());
    EXPECT_EQ(b->qp().state(), to);
  }
}

// The process that reported it may be stopped before it leaves.
TEST_F(Lifetime, a_fault_is_told_at_once_and_receives_are_flushed_when_the_peer_has_left) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  begin_write(from, to);
  auto& state = b_nic.adapter().segment().header().qps[b->qpn().index()].state;
  state = static_cast<std::uint32_t>(QpState::err);
  std::future<void> heard =
      std::async(std::launch::async, [&] { b_nic.adapter().faulted(b->qpn(), Fault::access); });
  EXPECT_EQ(heard.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(b_nic.async_events().size(), 1u);
  EXPECT_FALSE(b->poll_recv());
  release();
  heard.get();
  host.advance(20'000'000);
  EXPECT_TRUE(completed(b->poll_recv(), 7, WcStatus::wr_flush_err));
}

TEST_F(Lifetime, a_change_of_rights_waits_for_a_peer_that_is_writing) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  begin_write(from, to);
  expect_waits_for_the_write([&] {
    b_nic.adapter().table().update(to.key(), 0, pd);
    b_nic.adapter().drain_initiators(to.key());
  });
}

TEST_F(Lifetime, destruction_waits_for_a_peer_that_is_writing) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  begin_write(from, to);
  expect_waits_for_the_write([&] { b->destroy_qp(); });
}

TEST_F(Lifetime, reset_waits_for_a_peer_that_is_writing) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  begin_write(from, to);
  expect_waits_for_the_write([&] { b->modify(QpState::reset, {}); });
}

TEST_F(Lifetime, reset_is_refused_while_a_stopped_peer_may_still_write) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  begin_write(from, to);
  run_while_time_passes([&] { EXPECT_FALSE(b->modify(QpState::reset)); });
  EXPECT_EQ(b->qp().state(), QpState::err);
  release();
  EXPECT_TRUE(b->modify(QpState::reset));
  EXPECT_EQ(b->qp().state(), QpState::reset);
}

TEST_F(Lifetime, a_number_is_not_used_again_while_a_stopped_peer_may_still_write) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  const Qpn left = b->qpn();
  const auto comes_again = [&] {
    for (std::uint32_t i = 0; i < max_qps; ++i)
      if (Endpoint(b_nic, {.caps = {.max_send_wr = 1, .max_recv_wr = 1}}).qpn() == left) return true;
    return false;
  };
  begin_write(from, to);
  run_while_time_passes([&] { b->destroy_qp(); });
  EXPECT_FALSE(comes_again());
  release();
  EXPECT_TRUE(comes_again());
}

TEST_F(Lifetime, error_waits_for_a_peer_that_is_writing) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  begin_write(from, to);
  expect_waits_for_the_write([&] { b->modify(QpState::err); });
}

// A receive that is reported as flushed belongs to the application; a peer that goes on may yet fill one.
TEST_F(Lifetime, receives_are_flushed_when_a_stopped_peer_has_left_and_each_completes_once) {
  connect_pair();
  Memory from(a_nic, 20'000), to(b_nic, 20'000), next(b_nic, 20'000);
  from.fill(8);
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  ASSERT_EQ(b->recv(8, {next.all()}), PostResult::ok);
  ASSERT_EQ(b->send(9, to.all()), PostResult::ok);
  begin([&] { (void)a->send(1, from.all()); });
  run_while_time_passes([&] { b->modify(QpState::err); });
  EXPECT_TRUE(completed(b->poll_send(), 9, WcStatus::wr_flush_err)) << "sends are not held up";
  for (int hours = 0; hours < 3; ++hours) {
    host.advance(3'600'000'000'000);
    EXPECT_FALSE(b->poll_recv());
  }
  release();
  host.advance(20'000'000);
  EXPECT_TRUE(completed(b->poll_recv(), 7)) << "it had come before the flush";
  EXPECT_EQ(to.part(0, to.size()), from.part(0, from.size()));
  EXPECT_TRUE(completed(b->poll_recv(), 8, WcStatus::wr_flush_err));
  EXPECT_FALSE(b->poll_recv());
}

TEST_F(Lifetime, receives_are_flushed_when_a_peer_that_was_stopped_is_killed) {
  connect_pair();
  Memory to(b_nic, 64);
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  b_nic.adapter().segment().header().qps[b->qpn().index()].hazard.store(1);  // inside, and stands still
  run_while_time_passes([&] { b->modify(QpState::err); });
  EXPECT_FALSE(b->poll_recv());
  b->recv_cq().arm(Armed::next);
  host.kill(a_nic);
  settle();
  host.advance(20'000'000);
  EXPECT_EQ(b_nic.channel_events(2), 1) << "a sleeper must hear of it";
  EXPECT_TRUE(completed(b->poll_recv(), 7, WcStatus::wr_flush_err));
}

// One that is still connected to what this queue pair was before goes on trying.
TEST_F(Lifetime, deregistration_waits_for_a_peer_that_is_writing_whatever_an_earlier_peer_tries) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_TRUE(b->modify(QpState::reset));
  Nic& c_nic = host.add_nic();
  Endpoint c(c_nic);
  Memory next(c_nic, 64);
  connect(c, *b);
  begin([&] { (void)c.write(1, next.all(), to.addr(), to.key()); });
  EXPECT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_FALSE(a->poll_send());
  expect_waits_for_the_write([&] { to.deregister(); });
}

TEST_F(Lifetime, deregistration_after_a_reset_still_waits_for_a_peer_that_is_writing) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  begin_write(from, to);
  expect_waits_for_the_write([&] {
    b->modify(QpState::reset, {});
    to.deregister();
  });
}

// Destruction gives up on it, and what follows may not.
TEST_F(Lifetime, deregistration_after_a_destruction_still_waits_for_a_peer_that_is_writing) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  begin_write(from, to);
  run_while_time_passes([&] { b->destroy_qp(); });
  expect_waits_for_the_write([&] { to.deregister(); });
}

TEST_F(Lifetime, deregistration_after_a_destruction_does_not_wait_for_a_peer_that_is_killed) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  begin_write(from, to);
  run_while_time_passes([&] { b->destroy_qp(); });
  host.kill(a_nic);
  settle();
  Nic& next = host.replace(a_nic);
  EXPECT_NE(b_nic.peer(next.slot(), HostPort::Wait::no), nullptr);
  to.deregister();
  release();
}

// ---- reset

TEST_F(Lifetime, a_reset_queue_pair_forgets_everything_and_can_be_connected_again) {
  connect_pair();
  Memory from(a_nic, 10'000), to(b_nic, 10'000);
  for (int lap = 0; lap < 4; ++lap) {
    from.fill(static_cast<std::uint32_t>(lap));
    for (std::uint64_t id = 0; id < 5; ++id) ASSERT_EQ(b->recv(id, {to.all()}), PostResult::ok);
    ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
    ASSERT_EQ(a->send(2, from.all(), 0), PostResult::ok);
    ASSERT_TRUE(completed(b->poll_recv(), 0));
    a->modify(QpState::reset);
    b->modify(QpState::reset);
    EXPECT_FALSE(a->poll_send()) << "completions of before the reset are gone";
    EXPECT_FALSE(b->poll_recv());
    connect(*a, *b);
    EXPECT_FALSE(b->poll_recv()) << "receives of before the reset are gone";
    ASSERT_EQ(b->recv(10, {to.all()}), PostResult::ok);
    ASSERT_EQ(a->send(11, from.all()), PostResult::ok);
    ASSERT_TRUE(completed(a->poll_send(), 11));
    ASSERT_TRUE(completed(b->poll_recv(), 10));
    EXPECT_EQ(to.part(0, 10'000), from.part(0, 10'000));
    EXPECT_FALSE(a->poll_send());
    EXPECT_FALSE(b->poll_recv());
  }
}

TEST_F(Lifetime, a_failed_connection_can_be_made_again_through_reset) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), 0), PostResult::ok);
  settle();
  EXPECT_EQ(a->qp().state(), QpState::err);
  EXPECT_EQ(b->qp().state(), QpState::err);
  a->modify(QpState::reset);
  b->modify(QpState::reset);
  connect(*a, *b);
  ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2));
}

TEST_F(Lifetime, a_queue_pair_can_be_connected_to_another_after_reset) {
  connect_pair();
  Nic& c_nic = host.add_nic();
  Endpoint c(c_nic);
  Memory from(a_nic, 64), to(c_nic, 64), stale(b_nic, 64);
  from.fill(1);
  a->modify(QpState::reset);
  connect(*a, c);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

// Creates and destroys queue pairs until one has the number that `used` had.
std::unique_ptr<Endpoint> queue_pair_with_number_of(std::unique_ptr<Endpoint> used,
                                                    const EndpointOptions& options) {
  Nic& nic = used->nic();
  const Qpn number = used->qpn();
  used.reset();
  for (std::uint32_t tries = 0; tries < max_qps; ++tries) {
    auto next = std::make_unique<Endpoint>(nic, options);
    if (next->qpn().value() == number.value()) return next;
  }
  return nullptr;
}

class NumberUsedAgain : public Lifetime, public testing::WithParamInterface<QpType> {};
INSTANTIATE_TEST_SUITE_P(
    , NumberUsedAgain, testing::Values(QpType::rc, QpType::uc, QpType::ud), [](const auto& p) {
      return std::string(p.param == QpType::rc ? "rc" : p.param == QpType::uc ? "uc" : "ud");
    });

TEST_P(NumberUsedAgain, a_queue_pair_begins_with_empty_rings_whatever_the_last_of_its_number_did) {
  EndpointOptions options;
  options.type = GetParam();
  connect_pair(options);
  Memory from(a_nic, 16), to(b_nic, grh_bytes + 16);
  const SendRequest request{
      .wr_id = 1, .flags = send_flag::signaled, .datagram = {b->qpn(), options.qkey, nullptr}};
  for (std::uint64_t id = 1; id <= 5; ++id) {
    ASSERT_EQ(b->recv(id, {to.all()}), PostResult::ok);
    ASSERT_EQ(b->recv(id, {to.all()}), PostResult::ok);
    ASSERT_EQ(a->post(request, {from.all()}), PostResult::ok);
  }
  b = queue_pair_with_number_of(std::move(b), options);
  ASSERT_NE(b, nullptr);
  a = std::make_unique<Endpoint>(a_nic, options);
  connect(*a, *b);
  EXPECT_FALSE(b->poll_recv());
  for (std::uint64_t id = 1; id <= 5; ++id) {
    ASSERT_EQ(b->recv(id, {to.all()}), PostResult::ok);
    ASSERT_EQ(a->post(request, {from.all()}), PostResult::ok);
    ASSERT_TRUE(completed(a->poll_send(), 1));
    ASSERT_TRUE(completed(b->poll_recv(), id));
  }
  EXPECT_FALSE(b->poll_recv());
}

TEST_F(Lifetime, resetting_while_sends_wait_drops_them) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  a->modify(QpState::reset);
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  settle();
  host.advance(10'000'000'000);
  EXPECT_FALSE(a->poll_send());
  EXPECT_FALSE(b->poll_recv());
}

TEST_F(Lifetime, destroying_while_sends_wait_drops_them) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  a->destroy_qp();
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  settle();
  host.advance(10'000'000'000);
  EXPECT_FALSE(b->poll_recv());
}

TEST_F(Lifetime, a_thousand_queue_pairs_come_and_go_in_the_space_of_a_few) {
  Memory from(a_nic, 9000), to(b_nic, 9000);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    Endpoint one(a_nic), two(b_nic);
    connect(one, two);
    ASSERT_EQ(two.recv(i, {to.all()}), PostResult::ok);
    ASSERT_EQ(one.send(i, from.sge(0, i)), PostResult::ok);
    ASSERT_TRUE(completed(two.poll_recv(), i));
    ASSERT_TRUE(completed(one.poll_send(), i));
  }
}

}  // namespace
}  // namespace weir::rnic::test
