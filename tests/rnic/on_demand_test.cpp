// On-demand memory of the initiator that is unmapped when its request is executed.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

struct Way {
  const char* name;
  QpType type;
  Reach reach;  // of the target's memory
};

class OnDemandMemory : public TwoNics, public testing::WithParamInterface<Way> {
 protected:
  OnDemandMemory() {
    connect_pair({.type = GetParam().type});
    a_nic.on_fault_in = [this](void* at, std::uint64_t length, Use) {
      looked_at += length;
      return at != missing;
    };
  }
  SendRequest request(SendOpcode opcode) {
    return {.wr_id = 1,
            .opcode = opcode,
            .flags = send_flag::signaled,
            .imm_be = 9,
            .remote_addr = to.addr(),
            .rkey = to.key()};
  }

  Memory from{a_nic, 64, all_access | access::on_demand};
  Memory to{b_nic, 64, all_access, GetParam().reach};
  void* missing = nullptr;
  std::uint64_t looked_at = 0;
};
INSTANTIATE_TEST_SUITE_P(Of, OnDemandMemory,
                         testing::Values(Way{"rc_mapped", QpType::rc, Reach::mapped},
                                         Way{"rc_copied", QpType::rc, Reach::copied},
                                         Way{"uc_mapped", QpType::uc, Reach::mapped},
                                         Way{"uc_copied", QpType::uc, Reach::copied}),
                         [](const auto& param_info) { return param_info.param.name; });

constexpr SendOpcode opcodes[] = {SendOpcode::rdma_write, SendOpcode::rdma_write_with_imm, SendOpcode::send};

TEST_P(OnDemandMemory, is_looked_at_once) {
  for (const SendOpcode opcode : opcodes) {
    from.fill(static_cast<std::uint32_t>(opcode));
    looked_at = 0;
    ASSERT_EQ(b->recv(5, {to.all()}), PostResult::ok);
    ASSERT_EQ(a->post(request(opcode), {from.sge(0, 16), from.sge(16, 48)}), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 1));
    b->poll_recv();
    EXPECT_EQ(looked_at, 64u);
    EXPECT_EQ(to.part(0, 64), from.part(0, 64));
  }
}

TEST_P(OnDemandMemory, that_is_not_there_is_a_local_protection_error_and_takes_no_receive) {
  for (const SendOpcode opcode : opcodes) {
    SCOPED_TRACE(static_cast<int>(opcode));
    connect_pair({.type = GetParam().type});
    ASSERT_EQ(b->recv(5, {to.all()}), PostResult::ok);
    missing = from.data() + 16;
    ASSERT_EQ(a->post(request(opcode), {from.sge(0, 16), from.sge(16, 48)}), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_prot_err));
    EXPECT_EQ(a->qp().state(), GetParam().type == QpType::uc ? QpState::sqe : QpState::err);
    settle();
    EXPECT_FALSE(b->poll_recv());
    EXPECT_EQ(b->qp().state(), QpState::rts);
  }
}

}  // namespace
}  // namespace weir::rnic::test
