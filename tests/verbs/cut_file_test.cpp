// A process truncates the file that holds its registered memory while we have it mapped: our copy into it
// ends with an error, and does not kill us.
#include <chrono>
#include <fstream>
#include <string>

#include "process_test.hpp"

namespace weir::verbs_test {
namespace {

constexpr std::size_t message_bytes = 64 * 1024;

class CutFile : public ProcessTest {
 protected:
  void SetUp() override {
    connect(MemoryKind::ordinary, MemoryKind::shared);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!peers_memory_is_mapped()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, message_bytes, far), 0);
      ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
    }
  }
  static bool peers_memory_is_mapped() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find("/memfd:side ") != std::string::npos) return true;
    return false;
  }
  void cut_to(std::size_t bytes) { ASSERT_EQ(peer.order({.order = Order::cut, .length = bytes}).error, 0); }
  void expect_serves_others() {
    PeerProcess other;
    Side mine(MemoryKind::ordinary, memory_bytes);
    const SideAddress theirs = open_peer(other, MemoryKind::shared);
    ASSERT_EQ(other.order({.order = Order::connect, .peer = mine.address()}).error, 0);
    ASSERT_EQ(bring_up(mine.qp.get(), theirs.qpn), 0);
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(mine.post(IBV_WR_RDMA_WRITE, 2, message_bytes, theirs), 0);
      ASSERT_TRUE(completed(wait_for(mine.cq.get()), 2));
    }
  }
};

struct Operation {
  const char* name;
  ibv_wr_opcode opcode;
};
class CutFileUnder : public CutFile, public testing::WithParamInterface<Operation> {};
INSTANTIATE_TEST_SUITE_P(An, CutFileUnder,
                         testing::Values(Operation{"write", IBV_WR_RDMA_WRITE},
                                         Operation{"read", IBV_WR_RDMA_READ}, Operation{"send", IBV_WR_SEND}),
                         [](const auto& one) { return one.param.name; });

TEST_P(CutFileUnder, operation_fails_and_others_go_on) {
  ASSERT_EQ(peer.order({.order = Order::receive, .count = 1, .length = message_bytes}).error, 0);
  cut_to(0);
  ASSERT_EQ(side->post(GetParam().opcode, 3, message_bytes, far), 0);
  EXPECT_TRUE(completed(wait_for(side->cq.get()), 3, IBV_WC_REM_OP_ERR));
  expect_serves_others();
}

TEST_F(CutFile, what_it_still_has_is_written_and_read) {
  cut_to(message_bytes + 4096);
  fill(side->bytes(), 5);
  ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 4, message_bytes, far), 0);
  EXPECT_TRUE(completed(wait_for(side->cq.get()), 4));
  EXPECT_EQ(far_sum(message_bytes), own_sum(message_bytes));
}

TEST_F(CutFile, atomic_operation_fails) {
  cut_to(0);
  ibv_sge piece = side->sge(0, 8);
  ibv_send_wr wr = send_wr(6, piece, IBV_WR_ATOMIC_FETCH_AND_ADD);
  wr.wr.atomic = {.remote_addr = far.addr, .compare_add = 1, .swap = 0, .rkey = far.rkey};
  ASSERT_EQ(post(side->qp.get(), wr), 0);
  EXPECT_TRUE(completed(wait_for(side->cq.get()), 6, IBV_WC_REM_OP_ERR));
}

}  // namespace
}  // namespace weir::verbs_test
