// What a queue pair counts at both of its ends, and which counts remain after it.
#include <gtest/gtest.h>

#include <numeric>

#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

using Kind = OperationKind;
using Goes = PayloadGoes;

std::uint64_t done(Endpoint& e, Kind kind) {
  return e.qp().counters().operations[static_cast<std::size_t>(kind)].read();
}
std::uint64_t served(Endpoint& e, Kind kind) {
  return e.qp().counters().served[static_cast<std::size_t>(kind)].read();
}
std::uint64_t payload(Endpoint& e, Goes goes) {
  return e.qp().counters().payload[static_cast<std::size_t>(goes)].read();
}
std::uint64_t served_payload(Endpoint& e, Goes goes) {
  return e.qp().counters().served_payload[static_cast<std::size_t>(goes)].read();
}

struct Counters : TwoNics {
  // One of a kind, with 24 bytes of payload (an atomic has 8), over a pair that is connected.
  void do_one(SendOpcode opcode) {
    const SendRequest request{.wr_id = 1,
                              .opcode = opcode,
                              .flags = send_flag::signaled,
                              .remote_addr = there.addr(),
                              .rkey = there.key()};
    ASSERT_EQ(b->recv(1, {there.sge(0, 64)}), PostResult::ok);
    ASSERT_EQ(a->post(request, {here.sge(0, 24)}), PostResult::ok);
    ASSERT_TRUE(completed(a->poll_send(), 1));
    (void)b->poll_recv();
  }
  Memory here{a_nic, 64}, there{b_nic, 64};
};

struct Row {
  SendOpcode opcode;
  Kind kind;
  Goes goes;
  std::uint64_t bytes;
};

TEST_F(Counters, each_operation_counts_once_at_both_ends_with_its_payload) {
  for (const Row& row : {Row{SendOpcode::rdma_write, Kind::write, Goes::out, 24},
                         Row{SendOpcode::rdma_write_with_imm, Kind::write, Goes::out, 24},
                         Row{SendOpcode::send, Kind::send, Goes::out, 24},
                         Row{SendOpcode::send_with_imm, Kind::send, Goes::out, 24},
                         Row{SendOpcode::rdma_read, Kind::read, Goes::back, 24},
                         Row{SendOpcode::compare_and_swap, Kind::atomic, Goes::back, 8},
                         Row{SendOpcode::fetch_and_add, Kind::atomic, Goes::back, 8}}) {
    SCOPED_TRACE(static_cast<int>(row.opcode));
    connect_pair();
    do_one(row.opcode);
    for (const Kind kind : {Kind::send, Kind::write, Kind::read, Kind::atomic, Kind::local}) {
      EXPECT_EQ(done(*a, kind), kind == row.kind ? 1u : 0u) << static_cast<int>(kind);
      EXPECT_EQ(served(*b, kind), kind == row.kind ? 1u : 0u) << static_cast<int>(kind);
      EXPECT_EQ(done(*b, kind) + served(*a, kind), 0u);
    }
    for (const Goes goes : {Goes::out, Goes::back}) {
      EXPECT_EQ(payload(*a, goes), goes == row.goes ? row.bytes : 0u);
      EXPECT_EQ(served_payload(*b, goes), goes == row.goes ? row.bytes : 0u);
    }
    EXPECT_EQ(a->qp().counters().send_completions.read(), 1u);
    const bool consumes = row.kind == Kind::send || row.opcode == SendOpcode::rdma_write_with_imm;
    EXPECT_EQ(b->qp().counters().receives.read(), consumes ? 1u : 0u);
  }
}

TEST_F(Counters, one_doorbell_may_announce_several) {
  connect_pair();
  a->qp().begin_posting();
  for (int i = 0; i < 3; ++i) {
    PostResult result{};
    SendWqe* const wqe = a->qp().append(
        {.opcode = SendOpcode::rdma_write, .remote_addr = there.addr(), .rkey = there.key()}, result);
    ASSERT_NE(wqe, nullptr);
    const Sge sge = here.sge(0, 8);
    ASSERT_EQ(a->qp().set_sges(*wqe, {&sge, 1}), PostResult::ok);
  }
  a->qp().ring_doorbell();
  EXPECT_EQ(a->qp().counters().doorbells.read(), 1u);
  EXPECT_EQ(done(*a, Kind::write), 3u);
}

TEST_F(Counters, a_message_that_finds_no_receive_counts_its_rnr_and_its_retries) {
  connect_pair();
  ASSERT_EQ(a->send(1, here.sge(0, 8)), PostResult::ok);
  EXPECT_EQ(a->qp().counters().rnrs.read(), 1u);
  EXPECT_EQ(done(*a, Kind::send), 0u);
  ASSERT_EQ(b->recv(2, {there.sge(0, 8)}), PostResult::ok);
  settle();
  EXPECT_EQ(a->qp().counters().rnrs.read(), 1u);
  EXPECT_EQ(a->qp().counters().retries.read(), 1u);
  EXPECT_EQ(done(*a, Kind::send), 1u);
}

TEST_F(Counters, a_failed_request_counts_as_an_error_and_those_behind_it_as_flushed) {
  connect_pair();
  ASSERT_EQ(a->write(1, here.sge(0, 8), there.addr(), there.key() + 1), PostResult::ok);
  ASSERT_EQ(a->write(2, here.sge(0, 8), there.addr(), there.key()), PostResult::ok);
  EXPECT_EQ(a->qp().counters().send_errors.read(), 1u);
  EXPECT_EQ(a->qp().counters().sends_flushed.read(), 1u);
  EXPECT_EQ(done(*a, Kind::write) + served(*b, Kind::write), 0u);
}

TEST_F(Counters, receives_flushed_are_no_receives) {
  connect_pair();
  ASSERT_EQ(b->recv(1, {there.sge(0, 8)}), PostResult::ok);
  b->modify(QpState::err);
  ASSERT_TRUE(completed(b->poll_recv(), 1, WcStatus::wr_flush_err));
  EXPECT_EQ(b->qp().counters().receives_flushed.read(), 1u);
  EXPECT_EQ(b->qp().counters().receives.read(), 0u);
}

TEST_F(Counters, a_completion_that_wakes_a_channel_counts_a_wakeup) {
  connect_pair();
  ASSERT_EQ(b->recv(1, {there.sge(0, 8)}), PostResult::ok);
  b->recv_cq().arm(Armed::next);
  ASSERT_EQ(a->send(1, here.sge(0, 8)), PostResult::ok);
  a->send_cq().arm(Armed::next);
  ASSERT_EQ(a->write(2, here.sge(0, 8), there.addr(), there.key()), PostResult::ok);
  EXPECT_EQ(b->qp().counters().receive_wakeups.read(), 1u);
  EXPECT_EQ(a->qp().counters().own_wakeups.read(), 1u);
}

TEST_F(Counters, a_destroyed_queue_pair_stays_in_the_sums_of_its_process) {
  connect_pair();
  do_one(SendOpcode::rdma_write);
  const std::uint32_t index = a->qpn().index();
  const SegmentHeader& header = a_nic.adapter().segment().header();
  EXPECT_EQ(header.qp_exists[index].load(), 1u);
  a->destroy_qp();
  EXPECT_EQ(header.qp_exists[index].load(), 0u);
  EXPECT_EQ(header.counters.retired.operations[static_cast<std::size_t>(Kind::write)].read(), 1u);
  EXPECT_EQ(header.counters.retired.payload[static_cast<std::size_t>(Goes::out)].read(), 24u);
  EXPECT_EQ(header.counters.moving.load() % 2, 0u);
  EXPECT_GT(header.counters.qps_end.load(), index);
}

// for_each is written by hand: one that it forgot would be lost with its queue pair.
TEST_F(Counters, every_word_is_among_those_that_are_added_up) {
  QpCounters counters{};
  counters.for_each([](Counter& counter) { counter.add(1); });
  const auto* words = reinterpret_cast<const std::uint64_t*>(&counters);
  const std::size_t named = std::accumulate(words, words + sizeof counters / sizeof *words, std::size_t{0});
  EXPECT_EQ(named, 2 * operation_kinds + 4 + 37);
  counters.for_each([](Counter& counter) { EXPECT_EQ(counter.read(), 1u); });
}

}  // namespace
}  // namespace weir::rnic::test
