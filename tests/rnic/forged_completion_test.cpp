// Completions that no initiator writes: a neighbour may change the words it shares with us between its last
// store and our poll. The program must not be told anything that leads outside what it posted.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

struct Forgery {
  const char* name;
  void (*commit)(ReceiveCqe&);
  std::uint32_t most_bytes;  // that the program may be told
};

class ForgedCompletion : public TwoNics, public testing::WithParamInterface<Forgery> {
 protected:
  ReceiveCqe& last_cqe() {
    Segment& segment = b_nic.adapter().segment();
    const QpContext& context = segment.header().qps[b->qpn().index()];
    return segment.at<ReceiveCqe>(context.cqe_offset)[(context.cqe_next - 1) & context.cqe_mask];
  }
};

TEST_P(ForgedCompletion, tells_of_no_more_than_was_posted) {
  connect_pair();
  Memory from(a_nic, 16), to(b_nic, 64);
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  GetParam().commit(last_cqe());
  const auto told = b->poll_recv();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->wr_id, 7u);
  EXPECT_LE(told->byte_len, GetParam().most_bytes);
  EXPECT_TRUE(told->opcode == WcOpcode::recv || told->opcode == WcOpcode::recv_rdma_with_imm);
}

constexpr Forgery forgeries[] = {
    {"of_its_length", [](ReceiveCqe& cqe) { cqe.byte_len = 0xffffffff; }, 36},
    {"of_its_length_in_the_buffer",
     [](ReceiveCqe& cqe) {
       cqe.byte_len = 0xffffffff;
       cqe.payload_at = PayloadAt::buffer;
     },
     64},
    {"of_its_length_in_the_landing_ring",
     [](ReceiveCqe& cqe) {
       cqe.byte_len = 0xffffffff;
       cqe.payload_at = PayloadAt::landing;
       cqe.landing_start = 0xfffffff0;
     },
     64},
    {"of_where_its_payload_is", [](ReceiveCqe& cqe) { cqe.payload_at = static_cast<PayloadAt>(77); }, 64},
    {"of_its_opcode", [](ReceiveCqe& cqe) { cqe.opcode = WcOpcode::rdma_read; }, 64},
    {"of_its_status", [](ReceiveCqe& cqe) { cqe.status = static_cast<WcStatus>(200); }, 64},
    {"of_which_receive", [](ReceiveCqe& cqe) { cqe.wqe += 64; }, 64},
};
INSTANTIATE_TEST_SUITE_P(Words, ForgedCompletion, testing::ValuesIn(forgeries),
                         [](const auto& one) { return one.param.name; });

// Programs take it for a pointer.
TEST_F(ForgedCompletion, the_wr_id_never_comes_from_shared_memory) {
  connect_pair();
  Memory from(a_nic, 16), to(b_nic, 64);
  ASSERT_EQ(b->recv(7, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  Segment& segment = b_nic.adapter().segment();
  const QpContext& context = segment.header().qps[b->qpn().index()];
  std::memset(segment.at<std::byte>(context.rq_offset), 0xa5, context.rq_stride);
  const auto told = b->poll_recv();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->wr_id, 7u);
}

}  // namespace
}  // namespace weir::rnic::test
