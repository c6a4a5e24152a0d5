// Memory whose mapping changes after its registration: a work request that touches it ends with an error at
// the end that owns the memory, and no process gets a signal.
#include <sys/mman.h>

#include <optional>

#include "lone_pages.hpp"
#include "process_test.hpp"

namespace weir::verbs_test {
namespace {

enum class At : std::uint8_t { local, remote, receive };

struct Row {
  const char* name;
  ibv_wr_opcode opcode;
  std::uint32_t bytes;
  At at;
  int protection;  // the memory's from then on; no_mapping: it is unmapped
  ibv_wc_status sender, receiver = IBV_WC_SUCCESS;
};
constexpr int no_mapping = -1;

constexpr Row rows[] = {
    {"write_from_unmapped", IBV_WR_RDMA_WRITE, 20, At::local, no_mapping, IBV_WC_LOC_PROT_ERR},
    {"write_from_protected", IBV_WR_RDMA_WRITE, 20, At::local, PROT_NONE, IBV_WC_LOC_PROT_ERR},
    {"write_to_unmapped", IBV_WR_RDMA_WRITE, 20, At::remote, no_mapping, IBV_WC_REM_OP_ERR},
    {"write_to_read_only", IBV_WR_RDMA_WRITE, 4096, At::remote, PROT_READ, IBV_WC_REM_OP_ERR},
    {"write_with_imm_from_unmapped", IBV_WR_RDMA_WRITE_WITH_IMM, 20, At::local, no_mapping,
     IBV_WC_LOC_PROT_ERR},
    {"read_into_read_only", IBV_WR_RDMA_READ, 20, At::local, PROT_READ, IBV_WC_LOC_PROT_ERR},
    {"read_from_protected", IBV_WR_RDMA_READ, 20, At::remote, PROT_NONE, IBV_WC_REM_OP_ERR},
    {"fetch_add_on_unmapped", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, At::remote, no_mapping, IBV_WC_REM_OP_ERR},
    {"fetch_add_on_read_only", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, At::remote, PROT_READ, IBV_WC_REM_OP_ERR},
    {"swap_on_protected", IBV_WR_ATOMIC_CMP_AND_SWP, 8, At::remote, PROT_NONE, IBV_WC_REM_OP_ERR},
    {"fetch_add_into_read_only", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, At::local, PROT_READ, IBV_WC_LOC_PROT_ERR},
    {"short_send_from_unmapped", IBV_WR_SEND, 20, At::local, no_mapping, IBV_WC_LOC_PROT_ERR},
    {"send_from_unmapped", IBV_WR_SEND, 2048, At::local, no_mapping, IBV_WC_LOC_PROT_ERR},
    {"long_send_from_unmapped", IBV_WR_SEND, 16384, At::local, no_mapping, IBV_WC_LOC_PROT_ERR},
    // It is in the completion, and the sender has its own, before the receiver looks where it goes.
    {"short_send_into_read_only", IBV_WR_SEND, 20, At::receive, PROT_READ, IBV_WC_SUCCESS,
     IBV_WC_LOC_PROT_ERR},
    {"send_into_unmapped", IBV_WR_SEND, 4096, At::receive, no_mapping, IBV_WC_REM_OP_ERR,
     IBV_WC_LOC_PROT_ERR},
    {"long_send_into_read_only", IBV_WR_SEND, 16384, At::receive, PROT_READ, IBV_WC_REM_OP_ERR,
     IBV_WC_LOC_PROT_ERR},
};

ibv_send_wr request(const Row& row, ibv_sge& local, std::uint64_t addr, std::uint32_t rkey) {
  ibv_send_wr wr = send_wr(1, local, row.opcode);
  if (row.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || row.opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
    wr.wr.atomic = {.remote_addr = addr, .compare_add = 1, .swap = 2, .rkey = rkey};
  else if (row.opcode != IBV_WR_SEND)
    wr.wr.rdma = {.remote_addr = addr, .rkey = rkey};
  return wr;
}

void change(std::uint8_t* memory, std::size_t bytes, int protection) {
  if (protection == no_mapping)
    ASSERT_EQ(::munmap(memory, bytes), 0);
  else
    ASSERT_EQ(::mprotect(memory, bytes, protection), 0);
}

class GoneMemory : public ConnectedTest, public testing::WithParamInterface<Row> {};
INSTANTIATE_TEST_SUITE_P(Of, GoneMemory, testing::ValuesIn(rows),
                         [](const auto& one) { return one.param.name; });

TEST_P(GoneMemory, of_one_process_is_an_error_of_the_end_whose_it_is) {
  const Row& row = GetParam();
  const LonePages pages;
  const Mr gone(ibv_reg_mr(pd.get(), pages.data, LonePages::bytes, all_access));
  Buffer here(pd.get(), LonePages::bytes);
  ASSERT_TRUE(gone);
  ibv_sge missing{reinterpret_cast<std::uint64_t>(pages.data), row.bytes, gone->lkey};
  ibv_sge local = row.at == At::local ? missing : here.sge(0, row.bytes);
  ASSERT_EQ(post_recv(b.get(), 2, row.at == At::receive ? missing : here.sge(0, row.bytes)), 0);
  change(pages.data, LonePages::bytes, row.protection);
  const bool remote = row.at == At::remote;
  ASSERT_EQ(post(a.get(),
                 request(row, local, remote ? missing.addr : here.addr(), remote ? gone->rkey : here.rkey())),
            0);
  EXPECT_TRUE(completed(wait_for(a_cq.get()), 1, row.sender));
  if (row.receiver == IBV_WC_SUCCESS) return;
  EXPECT_TRUE(completed(wait_for(b_cq.get()), 2, row.receiver));
  EXPECT_EQ(post_recv(b.get(), 3, here.all()), 0);
  EXPECT_TRUE(completed(wait_for(b_cq.get()), 3, IBV_WC_WR_FLUSH_ERR))
      << "its queue pair is in the error state";
}

// The error says which end lacks the memory, whatever path the bytes take.
class GoneMemoryOfTwo : public ProcessTest, public testing::WithParamInterface<Row> {};
INSTANTIATE_TEST_SUITE_P(Of, GoneMemoryOfTwo, testing::ValuesIn(rows),
                         [](const auto& one) { return one.param.name; });

TEST_P(GoneMemoryOfTwo, is_an_error_of_the_end_whose_it_is) {
  const Row& row = GetParam();
  if (row.at != At::local) GTEST_SKIP() << "the target's side";
  connect();
  const LonePages pages;
  const Mr gone(ibv_reg_mr(side->pd.get(), pages.data, LonePages::bytes, all_access));
  ASSERT_TRUE(gone);
  ASSERT_EQ(peer.order({.order = Order::receive, .count = 1, .length = LonePages::bytes}).error, 0);
  ibv_sge local{reinterpret_cast<std::uint64_t>(pages.data), row.bytes, gone->lkey};
  change(pages.data, LonePages::bytes, row.protection);
  ASSERT_EQ(post(side->qp.get(), request(row, local, far.addr, far.rkey)), 0);
  EXPECT_TRUE(completed(wait_for(side->cq.get()), 1, IBV_WC_LOC_PROT_ERR));
}

}  // namespace
}  // namespace weir::verbs_test
