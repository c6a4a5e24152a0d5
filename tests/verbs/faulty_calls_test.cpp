// Calls, completions, queue pairs and receives that fail on purpose (WEIR_FAULT), as a program sees them.
//
// Each test runs in a process of its own: faults are read once, when the device is opened.
#include <cstdlib>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

// Two connected queue pairs of one process: 1 sends, with the extended calls, and 2 receives.
struct Ends {
  explicit Ends(std::optional<Patience> patience)
      : context(open_device()),
        pd(ibv_alloc_pd(context.get())),
        a_cq(make_cq(context.get())),
        b_cq(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0)),
        a(make_extended_qp()),
        b(make_qp()) {
    if (!patience) return;  // not connected
    EXPECT_EQ(bring_up(a.get(), b->qp_num, *patience), 0);
    EXPECT_EQ(bring_up(b.get(), a->qp_num, *patience), 0);
  }
  static ibv_cq* make_cq(ibv_context* context) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 16;
    attr.wc_flags = IBV_WC_EX_WITH_QP_NUM;
    return ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &attr));
  }
  ibv_qp* make_extended_qp() const {
    const ibv_qp_init_attr plain = init_attr(a_cq.get());
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = a_cq.get();
    init.cap = plain.cap;
    init.qp_type = IBV_QPT_RC;
    init.pd = pd.get();
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = IBV_QP_EX_WITH_SEND;
    return ibv_create_qp_ex(context.get(), &init);
  }
  ibv_qp* make_qp() const {
    ibv_qp_init_attr init = init_attr(b_cq.get());
    return ibv_create_qp(pd.get(), &init);
  }

  int send(std::uint64_t id) {
    ibv_qp_ex* const ex = ibv_qp_to_qp_ex(a.get());
    ibv_wr_start(ex);
    ex->wr_id = id;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    ibv_wr_set_sge(ex, from.lkey(), from.addr(), static_cast<std::uint32_t>(from.size()));
    return ibv_wr_complete(ex);
  }
  int receive(std::uint64_t id) { return post_recv(b.get(), id, into.all()); }
  ibv_cq_ex* extended() { return reinterpret_cast<ibv_cq_ex*>(a_cq.get()); }
  // ibv_start_poll until it finds something or fails.
  int start_poll() {
    ibv_poll_cq_attr attr{};
    int result = ENOENT;
    while (result == ENOENT) result = ibv_start_poll(extended(), &attr);
    return result;
  }
  static ibv_qp_state state_of(ibv_qp* qp) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
  }

  Context context;
  Pd pd;
  Cq a_cq, b_cq;
  Qp a, b;
  Buffer from{pd.get(), 8}, into{pd.get(), 8};
};

constexpr std::optional<Patience> patient = Patience{}, hasty = Patience{.timeout = 8, .retry_cnt = 0},
                                  unconnected = std::nullopt;

void run(const char* faults, std::optional<Patience> patience, void (*check)(Ends&)) {
  ::setenv("WEIR_FAULT", faults, 1);
  use_own_runtime_directory();
  {
    Ends ends(patience);
    check(ends);
  }
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

struct Row {
  const char* name;
  const char* faults;
  std::optional<Patience> patience;
  void (*check)(Ends&);
  const char* report;  // a part of it
};

class FaultyCalls : public testing::TestWithParam<Row> {};

TEST_P(FaultyCalls, fail_as_written) {
  const Row& row = GetParam();
  EXPECT_EXIT(run(row.faults, row.patience, row.check), testing::ExitedWithCode(0), row.report);
}

void wr_complete_posts_nothing(Ends& ends) {
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(ends.receive(id), 0);
  EXPECT_EQ(ends.send(1), 0);
  EXPECT_EQ(ends.send(2), ENOMEM);
  EXPECT_EQ(ends.send(3), 0);
  EXPECT_TRUE(completed(wait_for(ends.a_cq.get()), 1));
  EXPECT_TRUE(completed(wait_for(ends.a_cq.get()), 3));
  EXPECT_TRUE(completed(wait_for(ends.b_cq.get()), 1));
  EXPECT_TRUE(completed(wait_for(ends.b_cq.get()), 2));
  EXPECT_FALSE(poll_once(ends.b_cq.get()));
}

void start_poll_takes_nothing(Ends& ends) {
  ASSERT_EQ(ends.receive(1), 0);
  ASSERT_EQ(ends.send(1), 0);
  EXPECT_EQ(ends.start_poll(), EIO);
  ASSERT_EQ(ends.start_poll(), 0);
  EXPECT_EQ(ends.extended()->wr_id, 1u);
  ibv_end_poll(ends.extended());
}

void start_poll_finds_another_status(Ends& ends) {
  ASSERT_EQ(ends.receive(1), 0);
  ASSERT_EQ(ends.send(1), 0);
  ASSERT_EQ(ends.start_poll(), 0);
  EXPECT_EQ(ends.extended()->status, IBV_WC_REM_ACCESS_ERR);
  ibv_end_poll(ends.extended());
  EXPECT_EQ(Ends::state_of(ends.a.get()), IBV_QPS_ERR);
}

void broken_queue_pair_is_flushed_and_reported(Ends& ends) {
  for (std::uint64_t id = 1; id <= 2; ++id) ASSERT_EQ(ends.receive(id), 0);
  ASSERT_EQ(ends.send(1), 0);
  ASSERT_TRUE(completed(wait_for(ends.b_cq.get()), 1));
  EXPECT_EQ(Ends::state_of(ends.b.get()), IBV_QPS_ERR);
  EXPECT_TRUE(completed(wait_for(ends.b_cq.get()), 2, IBV_WC_WR_FLUSH_ERR));
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(ends.context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.element.qp, ends.b.get());
  ibv_ack_async_event(&event);
  ASSERT_TRUE(completed(wait_for(ends.a_cq.get()), 1));
  ASSERT_EQ(ends.send(2), 0);
  EXPECT_TRUE(completed(wait_for(ends.a_cq.get()), 2, IBV_WC_RETRY_EXC_ERR)) << "it answers nobody any more";
}

void queue_pair_breaks_by_itself(Ends& ends) {
  ASSERT_EQ(ends.receive(1), 0);
  EXPECT_TRUE(completed(wait_for(ends.b_cq.get()), 1, IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(Ends::state_of(ends.a.get()), IBV_QPS_RTS);
}

void gone_address_has_no_gid(Ends& ends) {
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(ends.context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_GID_CHANGE);
  ibv_ack_async_event(&event);
  ibv_gid gid{};
  ASSERT_EQ(ibv_query_gid(ends.context.get(), 1, 0, &gid), 0);
  const ibv_gid nothing{};
  EXPECT_EQ(std::memcmp(gid.raw, nothing.raw, sizeof gid.raw), 0);
  ibv_gid_entry entry{};
  EXPECT_EQ(ibv_query_gid_ex(ends.context.get(), 1, 0, &entry, 0), ENODATA);
  ibv_ah_attr route{};
  route.is_global = 1;
  route.port_num = 1;
  EXPECT_EQ(ibv_create_ah(ends.pd.get(), &route), nullptr);
}

void second_message_waits(Ends& ends) {
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(ends.receive(id), 0);
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(ends.send(id), 0);
  ASSERT_TRUE(completed(wait_for(ends.b_cq.get()), 1));
  EXPECT_FALSE(poll_once(ends.b_cq.get()));
  ASSERT_TRUE(completed(wait_for(ends.b_cq.get()), 2));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
  EXPECT_TRUE(completed(wait_for(ends.b_cq.get()), 3));
}

INSTANTIATE_TEST_SUITE_P(
    Of, FaultyCalls,
    testing::Values(Row{"wr_complete_posts_nothing", "refuse ENOMEM call=ibv_wr_complete qp=1 nth=2", patient,
                        wr_complete_posts_nothing, "ibv_wr_complete 2 of QP 1"},
                    Row{"start_poll_takes_nothing", "refuse EIO call=ibv_start_poll nth=1", patient,
                        start_poll_takes_nothing, "ibv_start_poll 1\n"},
                    Row{"start_poll_finds_another_status", "complete IBV_WC_REM_ACCESS_ERR qp=1 nth=1",
                        patient, start_poll_finds_another_status, "completion 1 of QP 1"},
                    Row{"broken_queue_pair_is_flushed_and_reported", "qp-error qp=2 nth=1", hasty,
                        broken_queue_pair_is_flushed_and_reported, "completion 1 of QP 2"},
                    Row{"queue_pair_breaks_by_itself", "qp-error qp=2 from=300ms", patient,
                        queue_pair_breaks_by_itself, "s  QP 2\n"},
                    Row{"gone_address_has_no_gid", "gid-gone gid=0 from=100ms", unconnected,
                        gone_address_has_no_gid, "gid-gone gid=0 from=100ms: fired; 0 packets lost"},
                    Row{"second_message_waits", "rnr 200ms qp=2 nth=2", patient, second_message_waits,
                        "message 2 to QP 2"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace weir::verbs_test
