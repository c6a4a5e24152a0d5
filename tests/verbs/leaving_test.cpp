// Processes that end normally: what they sent before, and what their end must not disturb.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "process_test.hpp"

namespace weir::verbs_test {
namespace {

using LeavingTest = ProcessTest;

TEST_F(LeavingTest, what_a_peer_sent_before_it_left_is_received_without_errors) {
  connect();
  constexpr std::uint32_t count = 64;
  for (std::uint64_t i = 0; i < count + 10; ++i) ASSERT_EQ(side->receive(i, 64 * i, 64), 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t length = i % 2 == 0 ? 20 : 60;
    ASSERT_EQ(peer.order({.order = Order::run, .length = length, .opcode = IBV_WR_SEND}).succeeded, 1u);
  }
  EXPECT_EQ(peer.leave(), 0);
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_TRUE(completed(wait_for(side->cq.get()), i));
  EXPECT_FALSE(poll_once(side->cq.get()));
}

// On a wire the datagram is gone before main has returned; here its destination's process is not connected
// yet when it is posted.
TEST_F(LeavingTest, the_first_datagram_of_a_program_that_ends_at_once_arrives) {
  const Context context = open_device();
  const Pd pd(ibv_alloc_pd(context.get()));
  const Cq cq(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0));
  ibv_qp_init_attr init = init_attr(cq.get(), {.type = IBV_QPT_UD});
  const Qp qp(ibv_create_qp(pd.get(), &init));
  ASSERT_EQ(bring_up(qp.get(), 0), 0);
  Buffer into(pd.get(), 100);
  for (std::uint64_t round = 0; round < 10; ++round) {
    ASSERT_EQ(post_recv(qp.get(), round, into.all()), 0);
    PeerProcess brief;
    EXPECT_EQ(brief.leave({.order = Order::last_word, .peer = {.qpn = qp->qp_num}}), 0);
    ASSERT_TRUE(completed(poll_once(cq.get()), round)) << "it has ended, and so whatever it sent is here";
  }
}

// ---- fork

TEST_F(LeavingTest, the_end_of_a_forked_child_does_not_disturb_its_parent) {
  connect();
  for (const bool runs_exit_handlers : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (runs_exit_handlers) std::exit(0);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fill(side->bytes(), runs_exit_handlers);
    ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, 5000, far), 0);
    ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
    EXPECT_EQ(far_sum(5000), own_sum(5000));
    ASSERT_EQ(side->receive(2, 0, 64), 0);
    EXPECT_EQ(peer.order({.order = Order::run, .length = 64, .opcode = IBV_WR_SEND}).succeeded, 1u);
    EXPECT_TRUE(completed(wait_for(side->cq.get()), 2));
  }
}

#if !defined(__SANITIZE_THREAD__)  // which cannot follow a child of a process with threads
TEST_F(LeavingTest, a_forked_child_can_open_the_device_for_itself) {
  connect();
  const pid_t child = ::fork();
  if (child == 0) {
    PeerProcess other;
    Side mine(MemoryKind::ordinary, memory_bytes);
    const SideAddress theirs = open_peer(other, MemoryKind::ordinary);
    const bool up = other.order({.order = Order::connect, .peer = mine.address()}).error == 0 &&
                    bring_up(mine.qp.get(), theirs.qpn) == 0;
    const bool posted = up && mine.post(IBV_WR_RDMA_WRITE, 1, 5000, theirs) == 0;
    const auto wc = posted ? wait_for(mine.cq.get()) : std::nullopt;
    other.kill();
    ::_exit(wc && wc->status == IBV_WC_SUCCESS ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, 5000, far), 0);
  EXPECT_TRUE(completed(wait_for(side->cq.get()), 1));
}
#endif

}  // namespace
}  // namespace weir::verbs_test
