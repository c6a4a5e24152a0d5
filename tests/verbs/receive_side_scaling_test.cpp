// Queue pairs that spread frames over work queues, through the C ABI: which queue gets a
// frame, and what is refused.
#include <cerrno>
#include <functional>
#include <set>

#include "tests/rnic/frames.hpp"
#include "work_queues.hpp"

namespace weir::verbs_test {
namespace {

using rnic::test::frame;
using rnic::test::FrameShape;

class ReceiveSideScaling : public VerbsTest {
 protected:
  ReceiveSideScaling() {
    EXPECT_EQ(bring_up_raw(sender.get()), 0);
    for (Wq* wq : {&even, &odd})
      for (std::uint64_t id = 0; id < 16; ++id) EXPECT_EQ(post_recv(wq->get(), id, into.all()), 0);
  }
  Flow everything(ibv_qp* qp) { return Flow(ibv_create_flow(qp, FlowAttributes().get())); }
  void send(const FrameShape& shape) {
    const std::vector<std::byte> bytes = frame(shape);
    std::memcpy(from.data(), bytes.data(), bytes.size());
    ibv_sge sge = from.sge(0, bytes.size());
    ASSERT_EQ(post(sender.get(), send_wr(1, sge)), 0);
    ASSERT_TRUE(completed(wait_for(send_cq.get()), 1));
  }

  Buffer from{pd.get(), 4096}, into{pd.get(), 4096};
  Cq send_cq = make_cq(), even_cq = make_cq(), odd_cq = make_cq();
  Qp sender = make_qp(send_cq.get(), {.type = IBV_QPT_RAW_PACKET});
  Wq even = ready_wq(pd.get(), even_cq.get()), odd = ready_wq(pd.get(), odd_cq.get());
  IndirectionTable table = make_table(context.get(), {even.get(), odd.get()});
};

TEST_F(ReceiveSideScaling, completes_each_frame_in_the_work_queue_of_its_hash) {
  const Qp qp = rss_qp(pd.get(), table.get());
  ASSERT_TRUE(qp);
  const Flow flow = everything(qp.get());
  for (std::uint8_t address = 0; address < 8; ++address) {
    const FrameShape shape{.host = address};
    send(shape);
    const bool is_odd = address % 2 == 1;
    const auto wc = wait_for(is_odd ? odd_cq.get() : even_cq.get());
    ASSERT_TRUE(completed(wc, address / 2));
    EXPECT_FALSE(poll_once(is_odd ? even_cq.get() : odd_cq.get()));
    EXPECT_EQ(wc->opcode, IBV_WC_RECV);
    EXPECT_EQ(wc->qp_num, (is_odd ? odd : even)->wq_num);
    EXPECT_EQ(wc->byte_len, frame(shape).size());
    EXPECT_EQ(wc->wc_flags, 0u);
    EXPECT_EQ(std::memcmp(into.data(), frame(shape).data(), wc->byte_len), 0);
  }
}

TEST_F(ReceiveSideScaling, gives_frames_without_the_fields_to_the_first_entry) {
  const Qp qp = rss_qp(pd.get(), table.get());
  const Flow flow = everything(qp.get());
  for (const std::uint8_t address : {std::uint8_t{1}, std::uint8_t{2}}) {
    send({.ip = 6, .host = address});
    EXPECT_TRUE(wait_for(even_cq.get()));
  }
  EXPECT_FALSE(poll_once(odd_cq.get()));
}

TEST_F(ReceiveSideScaling, may_share_a_table_among_queue_pairs) {
  ibv_qp_init_attr_ex init = rss_attr(pd.get(), table.get());
  init.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV6;
  const Qp by_ipv4 = rss_qp(pd.get(), table.get()), by_ipv6(ibv_create_qp_ex(context.get(), &init));
  ASSERT_TRUE(by_ipv4 && by_ipv6);
  EXPECT_NE(by_ipv4->qp_num, by_ipv6->qp_num);
  const Flow four = everything(by_ipv4.get()), six = everything(by_ipv6.get());
  send({.host = 1});
  EXPECT_TRUE(wait_for(odd_cq.get()));
  EXPECT_TRUE(wait_for(even_cq.get())) << "it has no IPv6 address";
}

TEST_F(ReceiveSideScaling, wakes_who_waits_for_the_work_queues_channel) {
  const Channel channel(ibv_create_comp_channel(context.get()));
  const Cq cq = make_cq(16, channel.get());
  const Wq wq = ready_wq(pd.get(), cq.get());
  ASSERT_EQ(post_recv(wq.get(), 3, into.all()), 0);
  const IndirectionTable own = make_table(context.get(), {wq.get()});
  const Qp qp = rss_qp(pd.get(), own.get());
  const Flow flow = everything(qp.get());
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  EXPECT_FALSE(readable(channel->fd));
  send({});
  ASSERT_TRUE(readable(channel->fd, 60'000));
  ibv_cq* of = nullptr;
  void* cookie = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &of, &cookie), 0);
  EXPECT_EQ(of, cq.get());
  ibv_ack_cq_events(of, 1);
  EXPECT_TRUE(completed(wait_for(cq.get()), 3));
}

TEST_F(ReceiveSideScaling, is_read_from_extended_completion_queues) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_BYTE_LEN;
  const Cq cq(ibv_cq_ex_to_cq(ibv_create_cq_ex(context.get(), &attr)));
  ASSERT_TRUE(cq);
  auto* ex = reinterpret_cast<ibv_cq_ex*>(cq.get());
  const Wq one = ready_wq(pd.get(), cq.get()), two = ready_wq(pd.get(), cq.get());
  for (const Wq* wq : {&one, &two}) ASSERT_EQ(post_recv(wq->get(), 40 + (wq == &two), into.all()), 0);
  const IndirectionTable both = make_table(context.get(), {one.get(), two.get()});
  const Qp qp = rss_qp(pd.get(), both.get());
  const Flow flow = everything(qp.get());
  for (const std::uint8_t address : {std::uint8_t{2}, std::uint8_t{3}}) {
    send({.host = address});
    ibv_poll_cq_attr poll{};
    ASSERT_EQ(ibv_start_poll(ex, &poll), 0) << "a frame is there when its sending has completed";
    EXPECT_EQ(ex->wr_id, address == 2 ? 40u : 41u);
    EXPECT_EQ(ex->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_qp_num(ex), (address == 2 ? one : two)->wq_num);
    EXPECT_EQ(ibv_wc_read_byte_len(ex), frame({}).size());
    ibv_end_poll(ex);
  }
}

TEST_F(ReceiveSideScaling, has_no_queues_and_no_states) {
  const Qp qp = rss_qp(pd.get(), table.get());
  EXPECT_EQ(qp->state, IBV_QPS_RTR);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(attr.cap.max_send_wr, 0u);
  EXPECT_EQ(attr.cap.max_recv_wr, 0u);
  EXPECT_EQ(init.qp_type, IBV_QPT_RAW_PACKET);
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE), EOPNOTSUPP);
  ibv_sge sge = from.sge(0, 64);
  EXPECT_EQ(post(qp.get(), send_wr(1, sge)), EINVAL);
  EXPECT_EQ(post_recv(qp.get(), 1, into.all()), EINVAL);
  EXPECT_EQ(ibv_qp_to_qp_ex(qp.get()), nullptr);
}

TEST_F(ReceiveSideScaling, refuses_what_is_not_there) {
  const Context elsewhere = open_device();
  const Pd other_pd(ibv_alloc_pd(elsewhere.get()));
  const IndirectionTable single = make_table(context.get(), {even.get()});
  ibv_srq_init_attr srq_init{};
  srq_init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  const Srq srq(ibv_create_srq(pd.get(), &srq_init));
  struct Row {
    const char* name;
    int error;  // 0: granted
    std::function<void(ibv_qp_init_attr_ex&)> change;
  };
  const auto hash = [](std::uint64_t fields) {
    return [fields](ibv_qp_init_attr_ex& init) { init.rx_hash_conf.rx_hash_fields_mask = fields; };
  };
  const Row rows[] = {
      {"as it should be", 0, [](auto&) {}},
      {"no create flags", 0, [](auto& init) { init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS; }},
      {"create flags", EOPNOTSUPP,
       [](auto& init) {
         init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
         init.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
       }},
      {"UD", EOPNOTSUPP, [](auto& init) { init.qp_type = IBV_QPT_UD; }},
      {"send operations", EOPNOTSUPP, [](auto& init) { init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS; }},
      {"a table without a hash", EINVAL,
       [](auto& init) { init.comp_mask &= ~unsigned{IBV_QP_INIT_ATTR_RX_HASH}; }},
      {"a hash without a table", EINVAL,
       [](auto& init) { init.comp_mask &= ~unsigned{IBV_QP_INIT_ATTR_IND_TABLE}; }},
      {"no domain's bit", EINVAL, [](auto& init) { init.comp_mask &= ~unsigned{IBV_QP_INIT_ATTR_PD}; }},
      {"no domain", EINVAL, [](auto& init) { init.pd = nullptr; }},
      {"another context's domain", EINVAL, [&](auto& init) { init.pd = other_pd.get(); }},
      {"no table", EINVAL, [](auto& init) { init.rwq_ind_tbl = nullptr; }},
      {"sends", EINVAL, [](auto& init) { init.cap.max_send_wr = 1; }},
      {"receives", EINVAL, [](auto& init) { init.cap.max_recv_wr = 1; }},
      {"pieces of receives", EINVAL, [](auto& init) { init.cap.max_recv_sge = 1; }},
      {"an SRQ", EINVAL, [&](auto& init) { init.srq = srq.get(); }},
      {"another function", EOPNOTSUPP, [](auto& init) { init.rx_hash_conf.rx_hash_function = 2; }},
      {"no key", EINVAL, [](auto& init) { init.rx_hash_conf.rx_hash_key = nullptr; }},
      {"a short key", EINVAL, [](auto& init) { init.rx_hash_conf.rx_hash_key_len = 39; }},
      {"a long key", EINVAL, [](auto& init) { init.rx_hash_conf.rx_hash_key_len = 41; }},
      {"addresses and ports", 0,
       hash(IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_DST_PORT_TCP)},
      {"both versions of IP", EINVAL, hash(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV6)},
      {"TCP and UDP", EINVAL, hash(IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_UDP)},
      {"IPsec", EOPNOTSUPP, hash(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_IPSEC_SPI)},
      {"inner headers", EOPNOTSUPP, hash(IBV_RX_HASH_SRC_IPV4 | std::uint64_t{IBV_RX_HASH_INNER})},
      {"no field and two entries", EINVAL, hash(0)},
      {"no field and one entry", 0,
       [&](auto& init) {
         init.rwq_ind_tbl = single.get();
         init.rx_hash_conf.rx_hash_fields_mask = 0;
       }},
  };
  for (const Row& row : rows) {
    ibv_qp_init_attr_ex init = rss_attr(pd.get(), table.get());
    row.change(init);
    errno = 0;
    const Qp made(ibv_create_qp_ex(context.get(), &init));
    EXPECT_EQ(made ? 0 : errno, row.error) << row.name;
  }
}

TEST_F(ReceiveSideScaling, is_what_the_device_says) {
  ibv_device_attr_ex device;
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &device), 0);
  EXPECT_EQ(device.rss_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
  EXPECT_EQ(device.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
  EXPECT_EQ(device.rss_caps.rx_hash_fields_mask, 0xffu) << "addresses of IPv4 and IPv6, ports of TCP and UDP";
  EXPECT_GE(device.rss_caps.max_rwq_indirection_tables, 1u);
  EXPECT_GE(device.rss_caps.max_rwq_indirection_table_size, 128u);
}

}  // namespace
}  // namespace weir::verbs_test
