// Rate limits: what can be set, and the minimum time of a transfer. tests/rnic/rate_limit_test.cpp
// uses the test's own clock.
#include <cerrno>
#include <chrono>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

class RateLimit : public VerbsTest {
 protected:
  // Until a's last of `count` WRITEs has completed, of which its owner hears by an event: nobody polls
  // before.
  milliseconds write_without_polling(std::uint64_t count, Buffer& bytes) {
    const auto begin = steady_clock::now();
    EXPECT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    for (std::uint64_t id = 1; id <= count; ++id) {
      ibv_sge sge = bytes.all();
      ibv_send_wr wr = send_wr(id, sge, IBV_WR_RDMA_WRITE, id == count ? IBV_SEND_SIGNALED : 0);
      wr.wr.rdma = {into.addr(), into.rkey()};
      EXPECT_EQ(post(a.get(), wr), 0);
    }
    EXPECT_TRUE(readable(channel->fd, 60'000));
    const auto took = duration_cast<milliseconds>(steady_clock::now() - begin);
    EXPECT_TRUE(completed(poll_once(cq.get()), count));
    ibv_cq* of = nullptr;
    void* cookie = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel.get(), &of, &cookie), 0);
    ibv_ack_cq_events(cq.get(), 1);
    return took;
  }

  static ibv_qp_rate_limit_attr limit_of(std::uint32_t kbps, std::uint32_t burst = 0,
                                         std::uint16_t packet = 0, std::uint32_t comp_mask = 0) {
    return {.rate_limit = kbps, .max_burst_sz = burst, .typical_pkt_sz = packet, .comp_mask = comp_mask};
  }

  Channel channel{ibv_create_comp_channel(context.get())};
  Cq cq = make_cq(128, channel.get()), other_cq = make_cq();
  Qp a = make_qp(cq.get()), b = make_qp(other_cq.get());
  Buffer into{pd.get(), 1 << 20};
};

TEST_F(RateLimit, is_within_what_the_device_says_it_can) {
  ibv_device_attr_ex device{};
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &device), 0);
  const ibv_packet_pacing_caps& caps = device.packet_pacing_caps;
  EXPECT_TRUE(caps.supported_qpts & 1u << IBV_QPT_RC);
  connect(a.get(), b.get());
  const auto set = [&](std::uint32_t kbps) {
    ibv_qp_attr limit{};
    limit.rate_limit = kbps;
    return ibv_modify_qp(a.get(), &limit, IBV_QP_RATE_LIMIT);
  };
  const auto set_rate = [&](ibv_qp_rate_limit_attr limit) {
    return ibv_modify_qp_rate_limit(a.get(), &limit);
  };
  const auto kept = [&] {
    ibv_qp_attr now{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(a.get(), &now, IBV_QP_RATE_LIMIT, &init), 0);
    return now.rate_limit;
  };
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(set(caps.qp_rate_limit_max), 0);
  EXPECT_EQ(kept(), caps.qp_rate_limit_max);
  EXPECT_EQ(set(caps.qp_rate_limit_max + 1), EINVAL);
  EXPECT_EQ(set(caps.qp_rate_limit_min - 1), EINVAL);
  EXPECT_EQ(set_rate(limit_of(caps.qp_rate_limit_min, 65536, 1024)), 0);
  EXPECT_EQ(kept(), caps.qp_rate_limit_min);
  EXPECT_EQ(set_rate(limit_of(0, 65536)), EINVAL) << "a burst of no rate";
  EXPECT_EQ(set_rate(limit_of(0, 0, 0, 1)), EINVAL);
  EXPECT_EQ(kept(), caps.qp_rate_limit_min) << "as it was before what was refused";
  EXPECT_EQ(set(0), 0);
  EXPECT_EQ(kept(), 0u);
}

TEST_F(RateLimit, is_of_a_queue_pair_that_sends) {
  ASSERT_EQ(modify(a.get(), to_init(IBV_QPT_RC)), 0);
  ibv_qp_rate_limit_attr limit = limit_of(10'000);
  EXPECT_EQ(ibv_modify_qp_rate_limit(a.get(), &limit), EINVAL);
}

TEST_F(RateLimit, holds_messages_back) {
  connect(a.get(), b.get());
  Buffer some{pd.get(), 8 << 10};
  ibv_qp_rate_limit_attr limit = limit_of(20'000, 8 << 10);  // 2.5 bytes a microsecond
  ASSERT_EQ(ibv_modify_qp_rate_limit(a.get(), &limit), 0);
  // 30 messages of 8 KiB, less the burst and the last one.
  EXPECT_GE(write_without_polling(30, some).count(), 28 * 8192 / 2500);
}

TEST_F(RateLimit, is_also_the_static_rate_of_the_path) {
  for (ibv_qp* qp : {a.get(), b.get()}) {
    ASSERT_EQ(modify(qp, to_init(IBV_QPT_RC)), 0);
    Step rtr = to_rtr(IBV_QPT_RC, qp == a.get() ? b->qp_num : a->qp_num, first_gid(context.get()));
    rtr.attr.ah_attr.static_rate = IBV_RATE_2_5_GBPS;  // 312.5 bytes a microsecond
    ASSERT_EQ(modify(qp, rtr), 0);
    ASSERT_EQ(modify(qp, to_rts(IBV_QPT_RC)), 0);
  }
  Buffer much{pd.get(), 1 << 20};
  EXPECT_GE(write_without_polling(12, much).count(), 10 * 1048576 / 312'500);
}

TEST_F(RateLimit, is_also_the_static_rate_of_a_datagrams_address_handle) {
  Cq ud_cq = make_cq();
  Qp ud = make_qp(ud_cq.get(), {.type = IBV_QPT_UD}), target = make_qp(other_cq.get(), {.type = IBV_QPT_UD});
  ASSERT_EQ(bring_up(ud.get(), 0), 0);
  ASSERT_EQ(bring_up(target.get(), 0), 0);
  ibv_ah_attr attr{};
  attr.port_num = 1;
  attr.is_global = 1;
  attr.grh.dgid = first_gid(context.get());
  attr.static_rate = IBV_RATE_2_5_GBPS;  // 312.5 bytes a microsecond
  const Ah ah(ibv_create_ah(pd.get(), &attr));
  Buffer some{pd.get(), 4096};
  constexpr std::uint64_t count = 1000, burst_bytes = 62'500;
  const auto begin = steady_clock::now();
  for (std::uint64_t id = 0; id < count; ++id) {
    ibv_sge sge = some.all();
    ibv_send_wr wr = send_wr(id, sge);
    wr.wr.ud = {ah.get(), target->qp_num, 0x1111};
    ASSERT_EQ(post(ud.get(), wr), 0);
    ASSERT_TRUE(completed(wait_for(ud_cq.get()), id));
  }
  const auto took = duration_cast<milliseconds>(steady_clock::now() - begin);
  EXPECT_GE(took.count(), static_cast<std::int64_t>((count - 1) * 4096 - burst_bytes) / 312'500);
}

}  // namespace
}  // namespace weir::verbs_test
