// An XRC domain that processes share through a file: the test sends to one process's SRQ through
// another process's queue pair.
#include "peer_process.hpp"
#include "xrc_side.hpp"

namespace weir::verbs_test {
namespace {

constexpr std::size_t message_bytes = 5000;

// `node` has the queue pair that answers, `rank` an SRQ of its own, the test sends.
class XrcProcess : public testing::TestWithParam<MemoryKind> {
 protected:
  XrcProcess() : own(GetParam(), -1, O_CREAT), sender(make_xrc_sender(own.pd.get(), own.cq.get())) {}

  Request join(int oflags = O_CREAT) const {
    return {.order = Order::xrc_join,
            .kind = GetParam(),
            .count = static_cast<std::uint32_t>(file.fd()),
            .seed = static_cast<std::uint32_t>(oflags)};
  }
  void connect() {
    node_srq = node.order(join()).address;
    rank_srq = rank.order(join(0)).address;
    target = node.order({.order = Order::xrc_target}).address.qpn;
    ASSERT_NE(target, 0u);
    ASSERT_EQ(node.order({.order = Order::xrc_connect, .peer = {.qpn = sender->qp_num}}).error, 0);
    ASSERT_EQ(bring_up_xrc(sender.get(), target, patience), 0);
  }
  int send(std::uint64_t id, const SideAddress& srq, ibv_wr_opcode opcode = IBV_WR_SEND) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(own.memory.bytes().data()), message_bytes, own.mr->lkey};
    ibv_send_wr wr = send_wr(id, sge, opcode);
    wr.wr.rdma = {srq.addr, srq.rkey};
    wr.qp_type.xrc.remote_srqn = srq.qpn;
    return post(sender.get(), wr);
  }
  // A message of this content arrives in that process.
  void expect_arrives(PeerProcess& at, const SideAddress& srq, std::uint32_t seed) {
    fill(own.memory.bytes().first(message_bytes), seed);
    ASSERT_EQ(at.order({.order = Order::xrc_receive, .count = 1, .length = message_bytes}).error, 0);
    ASSERT_EQ(send(seed, srq), 0);
    ASSERT_TRUE(completed(wait_for(own.cq.get()), seed));
    const Reply got = at.order({.order = Order::xrc_reap, .count = 1, .length = message_bytes});
    EXPECT_EQ(got.succeeded, 1u);
    EXPECT_EQ(got.address.qpn, target);
    EXPECT_EQ(got.checksum, checksum(own.memory.bytes().first(message_bytes)));
  }

  DomainFile file;
  PeerProcess node, rank;
  XrcSide own;  // in a domain of its own: a sender needs none
  Qp sender;
  SideAddress node_srq, rank_srq;
  std::uint32_t target = 0;
  Patience patience;
  // Half a second: the pauses of a busy machine are not the end of a process.
  static constexpr Patience little = {.timeout = 17, .retry_cnt = 0};
};
INSTANTIATE_TEST_SUITE_P(Memory, XrcProcess, testing::Values(MemoryKind::ordinary, MemoryKind::shared),
                         [](const auto& param_info) {
                           return param_info.param == MemoryKind::ordinary ? "ordinary" : "shared";
                         });

TEST_P(XrcProcess, one_queue_pair_reaches_the_srqs_of_all_processes_of_the_domain) {
  connect();
  expect_arrives(rank, rank_srq, 1);
  expect_arrives(node, node_srq, 2);
  expect_arrives(rank, rank_srq, 3);
}

TEST_P(XrcProcess, a_write_goes_into_the_memory_of_the_srqs_process) {
  connect();
  fill(own.memory.bytes().first(message_bytes), 7);
  ASSERT_EQ(send(1, rank_srq, IBV_WR_RDMA_WRITE), 0);
  ASSERT_TRUE(completed(wait_for(own.cq.get()), 1));
  const Reply got = rank.order({.order = Order::xrc_reap, .count = 0, .length = message_bytes});
  EXPECT_EQ(got.checksum, checksum(own.memory.bytes().first(message_bytes)));
}

TEST_P(XrcProcess, a_sender_waits_for_a_receive_in_the_srqs_process) {
  connect();
  ASSERT_EQ(send(1, rank_srq), 0);
  EXPECT_FALSE(poll_once(own.cq.get()));
  ASSERT_EQ(rank.order({.order = Order::xrc_receive, .count = 1, .length = message_bytes}).error, 0);
  EXPECT_TRUE(completed(wait_for(own.cq.get()), 1));
  EXPECT_EQ(rank.order({.order = Order::xrc_reap, .count = 1}).succeeded, 1u);
}

TEST_P(XrcProcess, the_srq_of_a_killed_process_is_none_and_the_others_go_on) {
  connect();
  expect_arrives(rank, rank_srq, 1);
  rank.kill();
  ASSERT_EQ(send(2, rank_srq), 0);
  EXPECT_TRUE(completed(wait_for(own.cq.get()), 2, IBV_WC_REM_INV_REQ_ERR));
  // Sender and target are in the error state; another pair serves the survivor.
  sender = make_xrc_sender(own.pd.get(), own.cq.get());
  target = node.order({.order = Order::xrc_target}).address.qpn;
  ASSERT_EQ(node.order({.order = Order::xrc_connect, .peer = {.qpn = sender->qp_num}}).error, 0);
  ASSERT_EQ(bring_up_xrc(sender.get(), target), 0);
  expect_arrives(node, node_srq, 3);
}

TEST_P(XrcProcess, who_waits_for_a_receive_of_a_killed_process_hears_of_its_end) {
  connect();
  ASSERT_EQ(send(1, rank_srq), 0);
  EXPECT_FALSE(poll_once(own.cq.get()));
  rank.kill();
  EXPECT_TRUE(completed(wait_for(own.cq.get()), 1, IBV_WC_REM_INV_REQ_ERR));
}

TEST_P(XrcProcess, the_end_of_the_queue_pairs_process_is_the_end_of_the_connection) {
  connect();
  expect_arrives(rank, rank_srq, 1);
  node.kill();
  ASSERT_EQ(send(2, rank_srq), 0);
  const auto wc = wait_for(own.cq.get());
  ASSERT_TRUE(wc);
  EXPECT_TRUE(wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR)
      << ibv_wc_status_str(wc->status);
}

// The first process makes the domain, the last ends it; errors are the kernel's.
TEST_P(XrcProcess, a_domain_is_there_while_some_process_has_it_open) {
  EXPECT_EQ(node.order(join(0)).error, EAGAIN) << "nobody has made it yet";
  EXPECT_EQ(node.order(join(O_CREAT | O_EXCL)).error, 0);
  EXPECT_EQ(rank.order(join(O_CREAT | O_EXCL)).error, EINVAL);
  EXPECT_EQ(rank.order(join(0)).error, 0);
  (void)node.order({.order = Order::xrc_quit});
  EXPECT_EQ(node.order(join(O_CREAT | O_EXCL)).error, EINVAL) << "the other still has it";
  EXPECT_EQ(node.order(join(O_CREAT)).error, 0);
  (void)node.order({.order = Order::xrc_quit});
  rank.kill();
  EXPECT_EQ(node.order(join(0)).error, EAGAIN) << "a killed process has nothing open";
  EXPECT_EQ(node.order(join(O_CREAT | O_EXCL)).error, 0);
}

TEST_P(XrcProcess, a_queue_pair_lives_while_some_process_has_it_open) {
  patience = little;
  connect();
  ASSERT_EQ(rank.order({.order = Order::xrc_open, .peer = {.qpn = target}}).error, 0);
  (void)node.order({.order = Order::xrc_close});
  expect_arrives(rank, rank_srq, 1);
  expect_arrives(node, node_srq, 2);
  (void)rank.order({.order = Order::xrc_close});
  ASSERT_EQ(send(3, rank_srq), 0);
  EXPECT_TRUE(completed(wait_for(own.cq.get()), 3, IBV_WC_RETRY_EXC_ERR));
  EXPECT_EQ(rank.order({.order = Order::xrc_open, .peer = {.qpn = target}}).error, EINVAL);
}

TEST_P(XrcProcess, a_killed_process_keeps_no_queue_pair) {
  patience = little;
  connect();
  ASSERT_EQ(rank.order({.order = Order::xrc_open, .peer = {.qpn = target}}).error, 0);
  (void)node.order({.order = Order::xrc_close});
  expect_arrives(node, node_srq, 1);
  rank.kill();
  // Once its end is noticed.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (node.order({.order = Order::xrc_open, .peer = {.qpn = target}}).error == 0) {
    (void)node.order({.order = Order::xrc_close});
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
  }
  ASSERT_EQ(send(2, node_srq), 0);
  EXPECT_TRUE(completed(wait_for(own.cq.get()), 2, IBV_WC_RETRY_EXC_ERR));
}

TEST_P(XrcProcess, a_queue_pair_outlives_the_killed_process_that_made_it) {
  patience = little;
  connect();
  ASSERT_EQ(rank.order({.order = Order::xrc_open, .peer = {.qpn = target}}).error, 0);
  expect_arrives(rank, rank_srq, 1);
  node.kill();
  for (std::uint32_t seed = 2; seed < 20; ++seed) expect_arrives(rank, rank_srq, seed);
  rank.kill();
  ASSERT_EQ(send(20, rank_srq), 0);
  EXPECT_TRUE(completed(wait_for(own.cq.get()), 20, IBV_WC_RETRY_EXC_ERR));
}

TEST_P(XrcProcess, a_queue_pair_outlives_the_process_that_made_it_and_returned_from_main) {
  connect();
  ASSERT_EQ(rank.order({.order = Order::xrc_open, .peer = {.qpn = target}}).error, 0);
  EXPECT_EQ(node.leave(), 0);
  for (std::uint32_t seed = 1; seed < 20; ++seed) expect_arrives(rank, rank_srq, seed);
}

TEST_P(XrcProcess, who_opens_a_queue_pair_may_bring_it_up) {
  node_srq = node.order(join()).address;
  rank_srq = rank.order(join(0)).address;
  target = node.order({.order = Order::xrc_target}).address.qpn;
  ASSERT_EQ(rank.order({.order = Order::xrc_open, .peer = {.qpn = target}}).error, 0);
  ASSERT_EQ(rank.order({.order = Order::xrc_connect, .peer = {.qpn = sender->qp_num}}).error, 0);
  ASSERT_EQ(bring_up_xrc(sender.get(), target), 0);
  expect_arrives(rank, rank_srq, 1);
  expect_arrives(node, node_srq, 2);
}

// Packets reach the process that made it.
TEST_P(XrcProcess, who_opens_a_queue_pair_does_not_connect_it_to_another_host) {
  node_srq = node.order(join()).address;
  target = node.order({.order = Order::xrc_target}).address.qpn;
  const Xrcd shared = open_xrcd(own.context.get(), file.fd(), 0);
  const Qp opened = open_xrc_target(shared.get(), target);
  ASSERT_TRUE(opened);
  ASSERT_EQ(modify(opened.get(), to_init(IBV_QPT_RC)), 0);
  constexpr ibv_gid elsewhere{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1}};
  EXPECT_EQ(modify(opened.get(), to_rtr(IBV_QPT_RC, sender->qp_num, elsewhere)), EOPNOTSUPP);
}

TEST_P(XrcProcess, a_queue_pair_of_no_domain_of_ours_is_not_opened) {
  connect();
  EXPECT_FALSE(open_xrc_target(own.xrcd.get(), target));
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(open_xrc_target(own.xrcd.get(), sender->qp_num));
  EXPECT_EQ(errno, EINVAL);
}

TEST_P(XrcProcess, a_private_domain_is_no_other_process_s) {
  connect();
  const SideAddress private_srq = own.address();
  ASSERT_EQ(send(1, private_srq), 0);
  EXPECT_TRUE(completed(wait_for(own.cq.get()), 1, IBV_WC_REM_INV_REQ_ERR));
}

}  // namespace
}  // namespace weir::verbs_test
