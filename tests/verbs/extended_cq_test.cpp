// ibv_create_cq_ex and its readers, resizing and modifying completion queues.
#include <ctime>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class ExtendedCq : public VerbsTest {
 protected:
  ibv_cq_ex* create(std::uint64_t wc_flags, std::uint32_t comp_mask = 0, std::uint32_t flags = 0) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 16;
    attr.wc_flags = wc_flags;
    attr.comp_mask = comp_mask;
    attr.flags = flags;
    errno = 0;
    return ibv_create_cq_ex(context.get(), &attr);
  }
  // ibv_start_poll until something is there.
  static int start(ibv_cq_ex* cq) {
    ibv_poll_cq_attr attr{};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    int result = ENOENT;
    while (result == ENOENT && std::chrono::steady_clock::now() < deadline)
      result = ibv_start_poll(cq, &attr);
    return result;
  }
};

TEST_F(ExtendedCq, readers_say_what_poll_cq_would) {
  Cq cq(ibv_cq_ex_to_cq(create(IBV_WC_STANDARD_FLAGS)));
  ASSERT_TRUE(cq);
  auto* ex = reinterpret_cast<ibv_cq_ex*>(cq.get());
  Qp a = make_qp(cq.get()), b = make_qp(cq.get());
  connect(a.get(), b.get());
  Buffer from(pd.get(), 100), into(pd.get(), 200);
  ASSERT_EQ(post_recv(b.get(), 7, into.all()), 0);
  ibv_sge sge = from.all();
  ibv_send_wr wr = send_wr(8, sge, IBV_WR_SEND_WITH_IMM, 0);
  wr.imm_data = htobe32(0x12345678);
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_EQ(start(ex), 0);
  EXPECT_EQ(ex->wr_id, 7u);
  EXPECT_EQ(ex->status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_wc_read_opcode(ex), IBV_WC_RECV);
  EXPECT_EQ(ibv_wc_read_byte_len(ex), 100u);
  EXPECT_EQ(ibv_wc_read_imm_data(ex), htobe32(0x12345678));
  EXPECT_EQ(ibv_wc_read_qp_num(ex), b->qp_num);
  EXPECT_EQ(ibv_wc_read_src_qp(ex), a->qp_num);
  EXPECT_EQ(ibv_wc_read_wc_flags(ex), unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ibv_wc_read_vendor_err(ex), 0u);
  EXPECT_EQ(ibv_wc_read_slid(ex), 0u);
  EXPECT_EQ(ibv_wc_read_sl(ex), 0u);
  EXPECT_EQ(ibv_wc_read_dlid_path_bits(ex), 0u);
  EXPECT_EQ(ibv_next_poll(ex), ENOENT);
  ibv_end_poll(ex);
}

TEST_F(ExtendedCq, next_poll_goes_through_all_of_them) {
  Cq cq(ibv_cq_ex_to_cq(create(0)));
  Cq other = make_cq();
  auto* ex = reinterpret_cast<ibv_cq_ex*>(cq.get());
  Qp a = make_qp(cq.get()), b = make_qp(other.get());
  connect(a.get(), b.get());
  Buffer from(pd.get(), 8), into(pd.get(), 8);
  for (std::uint64_t id = 0; id < 3; ++id) {
    ibv_sge sge = from.all();
    ibv_send_wr wr = send_wr(id, sge, IBV_WR_RDMA_WRITE);
    wr.wr.rdma.remote_addr = into.addr();
    wr.wr.rdma.rkey = into.rkey();
    ASSERT_EQ(post(a.get(), wr), 0);
  }
  ASSERT_EQ(start(ex), 0);
  EXPECT_EQ(ex->wr_id, 0u);
  ASSERT_EQ(ibv_next_poll(ex), 0);
  EXPECT_EQ(ex->wr_id, 1u);
  ibv_end_poll(ex);
  EXPECT_TRUE(completed(wait_for(cq.get()), 2)) << "what was not taken stays for ibv_poll_cq";
}

TEST_F(ExtendedCq, an_empty_one_says_enoent_and_needs_no_end_poll) {
  Cq cq(ibv_cq_ex_to_cq(create(0)));
  auto* ex = reinterpret_cast<ibv_cq_ex*>(cq.get());
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(ex, &attr), ENOENT);
  EXPECT_EQ(ibv_start_poll(ex, &attr), ENOENT) << "the lock was given back";
  attr.comp_mask = 1;
  EXPECT_EQ(ibv_start_poll(ex, &attr), EINVAL);
}

TEST_F(ExtendedCq, timestamps_lie_between_post_and_poll) {
  Cq cq(ibv_cq_ex_to_cq(
      create(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)));
  ASSERT_TRUE(cq);
  auto* ex = reinterpret_cast<ibv_cq_ex*>(cq.get());
  Qp a = make_qp(cq.get()), b = make_qp(cq.get());
  connect(a.get(), b.get());
  const auto device_ns = [&] {
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    EXPECT_EQ(ibv_query_rt_values_ex(context.get(), &values), 0);
    return static_cast<std::uint64_t>(values.raw_clock.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(values.raw_clock.tv_nsec);
  };
  const std::uint64_t before = device_ns();
  const auto wall = static_cast<std::uint64_t>(::time(nullptr));
  ibv_sge none{};
  ibv_send_wr wr = send_wr(1, none, IBV_WR_RDMA_WRITE);
  wr.num_sge = 0;
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_EQ(start(ex), 0);
  EXPECT_GE(ibv_wc_read_completion_ts(ex), before);
  EXPECT_LE(ibv_wc_read_completion_ts(ex), device_ns());
  EXPECT_GE(ibv_wc_read_completion_wallclock_ns(ex), wall * 1'000'000'000);
  ibv_end_poll(ex);
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &attr), 0);
  EXPECT_EQ(attr.hca_core_clock, 1'000'000u) << "kHz: a tick is a nanosecond";
}

TEST_F(ExtendedCq, unknown_wishes_are_refused) {
  EXPECT_EQ(create(IBV_WC_EX_WITH_CVLAN), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(create(IBV_WC_EX_WITH_FLOW_TAG), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(create(IBV_WC_EX_WITH_TM_INFO), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(create(0, IBV_CQ_INIT_ATTR_MASK_FLAGS, 1u << 20), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(create(0, IBV_CQ_INIT_ATTR_MASK_PD), nullptr) << "no parent domain given";
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(ExtendedCq, one_thread_polls_without_a_lock) {
  Cq cq(ibv_cq_ex_to_cq(create(0, IBV_CQ_INIT_ATTR_MASK_FLAGS,
                               IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)));
  ASSERT_TRUE(cq);
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(reinterpret_cast<ibv_cq_ex*>(cq.get()), &attr), ENOENT);
}

TEST_F(ExtendedCq, a_cq_is_not_resized_below_what_it_holds) {
  Cq cq = make_cq(8), other = make_cq();
  Qp a = make_qp(cq.get()), b = make_qp(other.get());
  connect(a.get(), b.get());
  for (std::uint64_t id = 0; id < 3; ++id) {
    ibv_sge none{};
    ibv_send_wr wr = send_wr(id, none, IBV_WR_RDMA_WRITE);
    wr.num_sge = 0;
    ASSERT_EQ(post(a.get(), wr), 0);
  }
  EXPECT_EQ(ibv_resize_cq(cq.get(), 2), EINVAL);
  EXPECT_EQ(ibv_resize_cq(cq.get(), 3), 0);
  EXPECT_GE(cq->cqe, 3);
  ASSERT_TRUE(completed(wait_for(cq.get()), 0));
  EXPECT_EQ(ibv_resize_cq(cq.get(), 2), 0);
}

TEST_F(ExtendedCq, received_datagrams_and_messages_count_when_it_is_resized) {
  Cq cq = make_cq(8), other = make_cq();
  Qp a = make_qp(other.get()), b = make_qp(cq.get());
  connect(a.get(), b.get());
  Buffer memory(pd.get(), 8);
  for (std::uint64_t id = 0; id < 2; ++id) {
    ASSERT_EQ(post_recv(b.get(), id, memory.all()), 0);
    ibv_sge sge = memory.all();
    ASSERT_EQ(post(a.get(), send_wr(id, sge)), 0);
  }
  EXPECT_EQ(ibv_resize_cq(cq.get(), 1), EINVAL);
  EXPECT_EQ(ibv_resize_cq(cq.get(), 2), 0);
}

TEST_F(ExtendedCq, moderation_is_refused_and_its_absence_granted) {
  Cq cq = make_cq();
  ibv_modify_cq_attr attr{IBV_CQ_ATTR_MODERATE, {1, 0}};
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), 0);
  attr.moderate = {16, 100};
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), EOPNOTSUPP);
  attr.attr_mask = 1u << 10;
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), EINVAL);
}

}  // namespace
}  // namespace weir::verbs_test
