// Completion queues: many queue pairs on one CQ, fairness, arming and solicited events.
#include <gmock/gmock.h>
#include <sched.h>

#include <thread>

#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

class CompletionQueues : public TwoNics {
 protected:
  static constexpr QpCapabilities small{
      .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1, .max_inline = 0};
};

// Pairs whose receiving ends share one CQ, and whose sending ends another.
class ManyPairs : public CompletionQueues, public testing::WithParamInterface<std::size_t> {
 protected:
  ManyPairs() : send_cq(*a_nic.adapter().create_cq(65536, 8)), cq(*b_nic.adapter().create_cq(65536, 9)) {
    for (std::size_t i = 0; i < GetParam(); ++i) {
      senders.push_back(std::make_unique<Endpoint>(a_nic, EndpointOptions{.caps = small, .cq = &send_cq}));
      receivers.push_back(std::make_unique<Endpoint>(b_nic, EndpointOptions{.caps = small, .cq = &cq}));
      connect(*senders.back(), *receivers.back());
    }
  }
  ~ManyPairs() override {
    senders.clear();
    receivers.clear();
    a_nic.adapter().destroy(&send_cq);
    b_nic.adapter().destroy(&cq);
  }
  // Puts one completion, whose wr_id is the pair's number, into both CQs.
  void deliver(std::size_t pair) {
    ASSERT_EQ(receivers[pair]->recv(pair, {sink.sge(0, 1)}), PostResult::ok);
    ASSERT_EQ(senders[pair]->send(pair, source.sge(0, 1)), PostResult::ok);
  }
  void deliver_on_all() {
    for (std::size_t i = 0; i < GetParam(); ++i) deliver(i);
  }

  CompletionQueue& send_cq;
  CompletionQueue& cq;
  Memory source{a_nic, 8};
  Memory sink{b_nic, 8};
  std::vector<std::unique_ptr<Endpoint>> senders, receivers;
};
INSTANTIATE_TEST_SUITE_P(Pairs, ManyPairs, testing::Values(1, 63, 64, 65, 130, 4200));

TEST_P(ManyPairs, every_completion_is_polled_once) {
  deliver_on_all();
  for (CompletionQueue* queue : {&cq, &send_cq}) {
    std::vector<int> seen(GetParam());
    std::array<WorkCompletion, 7> some;
    while (const int got = queue->poll(some)) {
      for (int i = 0; i < got; ++i) {
        const WorkCompletion& wc = some[static_cast<std::size_t>(i)];
        ASSERT_LT(wc.wr_id, GetParam());
        EXPECT_EQ(wc.qpn, (queue == &cq ? receivers : senders)[wc.wr_id]->qpn().value());
        EXPECT_EQ(wc.status, WcStatus::success);
        ++seen[wc.wr_id];
      }
    }
    EXPECT_THAT(seen, testing::Each(1));
    EXPECT_EQ(queue->poll(some), 0);
  }
}

// One queue pair that always has more to say must not keep the others from being heard.
TEST_P(ManyPairs, none_starves_behind_a_busy_one) {
  const std::size_t pairs = GetParam();
  constexpr std::size_t busy = 0;
  deliver_on_all();
  for (int i = 0; i < 10; ++i) deliver(busy);
  Endpoint::drain(send_cq);
  std::vector<bool> heard(pairs);
  std::size_t left = pairs;
  for (std::size_t polls = 0; left > 0; ++polls) {
    ASSERT_LT(polls, 4 * pairs + 64) << left << " of " << pairs << " never heard";
    const auto wc = Endpoint::poll(cq);
    ASSERT_TRUE(wc);
    if (!heard[wc->wr_id]) {
      heard[wc->wr_id] = true;
      --left;
    }
    if (wc->wr_id != busy) continue;
    deliver(busy);
    ASSERT_TRUE(Endpoint::poll(send_cq));
  }
}

TEST_P(ManyPairs, destroying_queue_pairs_takes_their_completions_along) {
  deliver_on_all();
  for (std::size_t i = 0; i < GetParam(); i += 2) receivers[i]->destroy_qp();
  std::size_t count = 0;
  while (auto wc = Endpoint::poll(cq)) {
    EXPECT_EQ(wc->wr_id % 2, 1u);
    ++count;
  }
  EXPECT_EQ(count, GetParam() / 2);
}

// ---- two ends on one CPU

// Two threads, each kept on a CPU of its own choice, post to each other's queue pair.
class OnOneCpu : public CompletionQueues {
 protected:
  static void keep_on(std::size_t cpu) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    ASSERT_EQ(::sched_setaffinity(0, sizeof only, &only), 0);
  }
  void SetUp() override {
    if (current_cpu() == 0) GTEST_SKIP() << "this system does not say on which CPU a thread is (rseq)";
    cpu_set_t allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
    connect_pair();
    ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  }
  // Posts a SEND from a thread on that CPU, then asks on the first one.
  bool b_finds_peer_after_send_on(std::size_t cpu) {
    bool found = false;
    std::thread([&] {
      keep_on(cpu);
      EXPECT_EQ(a->send(1, from.all()), PostResult::ok);
      keep_on(cpus[0]);
      found = b->recv_cq().peer_on_this_cpu();
    }).join();
    return found;
  }
  std::vector<std::size_t> cpus;
  Memory from{a_nic, 64}, to{b_nic, 64};
};

TEST_F(OnOneCpu, a_cq_finds_the_peer_that_posted_on_its_cpu) {
  EXPECT_TRUE(b_finds_peer_after_send_on(cpus[0]));
}

TEST_F(OnOneCpu, a_cq_does_not_find_a_peer_that_never_posted) {
  EXPECT_FALSE(b->recv_cq().peer_on_this_cpu());
}

TEST_F(OnOneCpu, a_cq_does_not_find_a_peer_that_posted_on_another_cpu) {
  if (cpus.size() < 2) GTEST_SKIP() << "this test may use one CPU only";
  EXPECT_FALSE(b_finds_peer_after_send_on(cpus[1]));
}

// ---- events

constexpr std::uint32_t recv_channel = 2;  // Endpoint's channel numbers
constexpr std::uint32_t send_channel = 1;

class Events : public CompletionQueues {
 protected:
  Events() {
    connect_pair();
    for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(b->recv(i, {to.all()}), PostResult::ok);
  }
  int recv_events() {
    settle();
    int taken = 0;
    while (b->recv_cq().take_event()) ++taken;
    EXPECT_EQ(b_nic.channel_events(recv_channel), taken) << "channel wake-ups and events differ";
    return taken;
  }
  void send(std::uint32_t flags = 0) { ASSERT_EQ(a->send(1, from.all(), flags), PostResult::ok); }

  Memory from{a_nic, 64}, to{b_nic, 64};
};

TEST_F(Events, an_unarmed_cq_raises_none) {
  send();
  EXPECT_EQ(recv_events(), 0);
}

TEST_F(Events, arming_gives_exactly_one_event) {
  b->recv_cq().arm(Armed::next);
  send();
  send();
  EXPECT_EQ(recv_events(), 1);
  send();
  EXPECT_EQ(recv_events(), 0);
}

TEST_F(Events, completions_from_before_arming_raise_none) {
  send();
  b->recv_cq().arm(Armed::next);
  EXPECT_EQ(recv_events(), 0);
  EXPECT_TRUE(b->poll_recv());
}

TEST_F(Events, arming_twice_gives_one_event) {
  b->recv_cq().arm(Armed::next);
  b->recv_cq().arm(Armed::next);
  send();
  send();
  EXPECT_EQ(recv_events(), 1);
}

TEST_F(Events, solicited_only_waits_for_a_solicited_send) {
  b->recv_cq().arm(Armed::solicited_only);
  send();
  EXPECT_EQ(recv_events(), 0);
  send(send_flag::solicited);
  EXPECT_EQ(recv_events(), 1);
}

TEST_F(Events, solicited_write_with_imm_counts) {
  b->recv_cq().arm(Armed::solicited_only);
  ASSERT_EQ(a->post({.opcode = SendOpcode::rdma_write_with_imm,
                     .flags = send_flag::solicited,
                     .remote_addr = to.addr(),
                     .rkey = to.key()},
                    {from.all()}),
            PostResult::ok);
  EXPECT_EQ(recv_events(), 1);
}

// IBA 11.4.2.2: a request for the next completion is not taken back by one for solicited completions.
TEST_F(Events, arming_for_solicited_does_not_weaken_arming_for_any) {
  b->recv_cq().arm(Armed::next);
  b->recv_cq().arm(Armed::solicited_only);
  send();
  EXPECT_EQ(recv_events(), 1);
}

TEST_F(Events, arming_for_any_strengthens_arming_for_solicited) {
  b->recv_cq().arm(Armed::solicited_only);
  b->recv_cq().arm(Armed::next);
  send();
  EXPECT_EQ(recv_events(), 1);
}

TEST_F(Events, a_send_completion_is_an_event_of_the_send_cq) {
  a->send_cq().arm(Armed::next);
  send();
  EXPECT_EQ(a_nic.channel_events(send_channel), 0) << "an unsignalled send completes without an event";
  send(send_flag::signaled);
  settle();
  EXPECT_EQ(a_nic.channel_events(send_channel), 1);
}

TEST_F(Events, an_error_counts_as_solicited) {
  b->recv_cq().arm(Armed::solicited_only);
  a->send_cq().arm(Armed::solicited_only);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key() ^ 1), PostResult::ok);
  EXPECT_EQ(recv_events(), 1) << "its receives were flushed";
  EXPECT_EQ(a_nic.channel_events(send_channel), 1);
}

TEST_F(Events, a_send_that_waited_raises_its_event_when_it_completes) {
  connect_pair();
  a->send_cq().arm(Armed::next);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  EXPECT_EQ(a_nic.channel_events(send_channel), 0);
  ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  settle();
  EXPECT_EQ(a_nic.channel_events(send_channel), 1);
}

}  // namespace
}  // namespace weir::rnic::test
