// Work queues and indirection tables through the C ABI: the arguments of their creation, their states,
// and the order of destruction.
#include <cerrno>
#include <functional>

#include "work_queues.hpp"

namespace weir::verbs_test {
namespace {

class WorkQueues : public VerbsTest {
 protected:
  ibv_wq_init_attr attr() { return wq_attr(pd.get(), cq.get()); }
  Wq make() {
    ibv_wq_init_attr init = attr();
    return Wq(ibv_create_wq(context.get(), &init));
  }
  ibv_device_attr_ex device() {
    ibv_device_attr_ex attributes;
    EXPECT_EQ(ibv_query_device_ex(context.get(), nullptr, &attributes), 0);
    return attributes;
  }

  Cq cq = make_cq();
  Buffer memory{pd.get(), 4096};
};

TEST_F(WorkQueues, begin_in_reset_with_what_was_asked_for) {
  ibv_wq_init_attr init = attr();
  int cookie = 0;
  init.wq_context = &cookie;
  init.max_sge = 0;
  const Wq wq(ibv_create_wq(context.get(), &init)), other = make();
  ASSERT_TRUE(wq);
  EXPECT_GE(init.max_wr, 64u);
  EXPECT_GE(init.max_sge, 1u);
  EXPECT_EQ(wq->context, context.get());
  EXPECT_EQ(wq->wq_context, &cookie);
  EXPECT_EQ(wq->pd, pd.get());
  EXPECT_EQ(wq->cq, cq.get());
  EXPECT_EQ(wq->state, IBV_WQS_RESET);
  EXPECT_EQ(wq->wq_type, IBV_WQT_RQ);
  EXPECT_NE(wq->wq_num, other->wq_num);
}

TEST_F(WorkQueues, refuse_what_is_not_there) {
  const Context elsewhere = open_device();
  const Pd other_pd(ibv_alloc_pd(elsewhere.get()));
  const Cq other_cq(ibv_create_cq(elsewhere.get(), 16, nullptr, nullptr, 0));
  const ibv_device_attr_ex limits = device();
  struct Row {
    const char* name;
    int error;
    std::function<void(ibv_wq_init_attr&)> change;
  };
  const Row rows[] = {
      {"type", EINVAL, [](auto& init) { init.wq_type = static_cast<ibv_wq_type>(1); }},
      {"no receive", EINVAL, [](auto& init) { init.max_wr = 0; }},
      {"receives", EINVAL, [&](auto& init) { init.max_wr = unsigned(limits.orig_attr.max_qp_wr) + 1; }},
      {"pieces", EINVAL, [&](auto& init) { init.max_sge = unsigned(limits.orig_attr.max_sge) + 1; }},
      {"no domain", EINVAL, [](auto& init) { init.pd = nullptr; }},
      {"another context's domain", EINVAL, [&](auto& init) { init.pd = other_pd.get(); }},
      {"no CQ", EINVAL, [](auto& init) { init.cq = nullptr; }},
      {"another context's CQ", EINVAL, [&](auto& init) { init.cq = other_cq.get(); }},
      {"unknown field", EOPNOTSUPP, [](auto& init) { init.comp_mask = IBV_WQ_INIT_ATTR_RESERVED; }},
      {"flag", EOPNOTSUPP,
       [](auto& init) {
         init.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
         init.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
       }},
  };
  for (const Row& row : rows) {
    ibv_wq_init_attr init = attr();
    row.change(init);
    errno = 0;
    EXPECT_EQ(ibv_create_wq(context.get(), &init), nullptr) << row.name;
    EXPECT_EQ(errno, row.error) << row.name;
  }
}

TEST_F(WorkQueues, move_between_states) {
  constexpr ibv_wq_state all[] = {IBV_WQS_RESET, IBV_WQS_RDY, IBV_WQS_ERR};
  constexpr int expected[3][3] = {{0, 0, EINVAL}, {0, 0, 0}, {0, EINVAL, 0}};
  for (const ibv_wq_state from : all) {
    for (const ibv_wq_state to : all) {
      const Wq wq = make();
      for (const ibv_wq_state on_the_way : all) {
        if (on_the_way <= from) {
          ASSERT_EQ(move(wq.get(), on_the_way), 0);
        }
      }
      const int result = expected[from][to];
      EXPECT_EQ(move(wq.get(), to), result) << from << " to " << to;
      EXPECT_EQ(wq->state, result == 0 ? to : from);
    }
  }
  EXPECT_EQ(move(make().get(), IBV_WQS_UNKNOWN), EINVAL);
}

TEST_F(WorkQueues, are_modified_as_the_mask_says) {
  const Wq wq = make();
  struct Row {
    const char* name;
    ibv_wq_attr attr;
    int error;
  };
  const Row rows[] = {
      {"nothing", {}, EINVAL},
      {"unknown", {IBV_WQ_ATTR_RESERVED, IBV_WQS_RESET, IBV_WQS_RESET, 0, 0}, EINVAL},
      {"not in that state",
       {IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE, IBV_WQS_RDY, IBV_WQS_ERR, 0, 0},
       EINVAL},
      {"a flag",
       {IBV_WQ_ATTR_FLAGS, IBV_WQS_RESET, IBV_WQS_RESET, 0, IBV_WQ_FLAGS_CVLAN_STRIPPING},
       EOPNOTSUPP},
      {"no flag", {IBV_WQ_ATTR_FLAGS, IBV_WQS_RESET, IBV_WQS_RESET, 0, 0}, 0},
      {"its state alone", {IBV_WQ_ATTR_CURR_STATE, IBV_WQS_RDY, IBV_WQS_RESET, 0, 0}, 0},
  };
  for (Row row : rows) {
    EXPECT_EQ(ibv_modify_wq(wq.get(), &row.attr), row.error) << row.name;
    EXPECT_EQ(wq->state, IBV_WQS_RESET) << row.name;
  }
  ibv_wq_attr attr{IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE, IBV_WQS_RDY, IBV_WQS_RESET, 0, 0};
  EXPECT_EQ(ibv_modify_wq(wq.get(), &attr), 0);
  EXPECT_EQ(wq->state, IBV_WQS_RDY);
}

TEST_F(WorkQueues, take_receives_up_to_their_size) {
  ibv_wq_init_attr init = attr();
  const Wq wq(ibv_create_wq(context.get(), &init));
  EXPECT_EQ(post_recv(wq.get(), 1, memory.all()), EINVAL) << "in reset";
  ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
  ibv_sge pieces[3] = {memory.sge(0, 8), memory.sge(8, 8), memory.sge(16, 8)};
  ibv_recv_wr good{}, longer{}, *bad = nullptr;
  good.sg_list = longer.sg_list = pieces;
  good.num_sge = 2;
  good.next = &longer;
  longer.num_sge = 3;
  EXPECT_EQ(ibv_post_wq_recv(wq.get(), &good, &bad), EINVAL);
  EXPECT_EQ(bad, &longer) << "the one before it is posted";
  for (std::uint32_t i = 1; i < init.max_wr; ++i) ASSERT_EQ(post_recv(wq.get(), i, memory.all()), 0) << i;
  EXPECT_EQ(post_recv(wq.get(), 0, memory.all()), ENOMEM);
}

TEST_F(WorkQueues, flush_their_receives_in_error) {
  const Wq wq = ready_wq(pd.get(), cq.get());
  for (std::uint64_t id : {4u, 5u}) ASSERT_EQ(post_recv(wq.get(), id, memory.all()), 0);
  ASSERT_EQ(move(wq.get(), IBV_WQS_ERR), 0);
  ASSERT_EQ(post_recv(wq.get(), 6, memory.all()), 0);
  for (std::uint64_t id : {4u, 5u, 6u}) {
    const auto wc = wait_for(cq.get());
    ASSERT_TRUE(completed(wc, id, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ(wc->qp_num, wq->wq_num);
  }
}

TEST_F(WorkQueues, keep_their_domain_and_cq_from_being_destroyed) {
  const Wq wq = make();
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(cq.get()), EBUSY);
}

TEST_F(WorkQueues, go_after_the_tables_that_have_them_and_those_after_their_queue_pairs) {
  Wq wq = ready_wq(pd.get(), cq.get()), unused = make();
  IndirectionTable table = make_table(context.get(), {wq.get(), wq.get()}),
                   second = make_table(context.get(), {wq.get()});
  ASSERT_TRUE(table && second);
  Qp qp = rss_qp(pd.get(), table.get());
  ASSERT_TRUE(qp);
  Flow flow(ibv_create_flow(qp.get(), FlowAttributes().get()));
  ASSERT_TRUE(flow);
  EXPECT_EQ(ibv_destroy_qp(qp.get()), EBUSY);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table.get()), EBUSY);
  EXPECT_EQ(ibv_destroy_wq(wq.get()), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
  flow.reset();
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table.get()), EBUSY);
  qp.reset();
  EXPECT_EQ(ibv_destroy_wq(wq.get()), EBUSY);
  table.reset();
  EXPECT_EQ(ibv_destroy_wq(wq.get()), EBUSY) << "the other table has it, too";
  second.reset();
  wq.reset();
}

TEST_F(WorkQueues, are_as_many_as_the_device_says) {
  const std::uint32_t most = device().max_wq_type_rq;
  ASSERT_GT(most, 0u);
  ibv_wq_init_attr init = attr();
  init.max_wr = 1;
  std::vector<Wq> made;
  for (std::uint32_t i = 0; i < most; ++i) {
    made.emplace_back(ibv_create_wq(context.get(), &init));
    ASSERT_TRUE(made.back()) << i;
  }
  errno = 0;
  EXPECT_EQ(ibv_create_wq(context.get(), &init), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(WorkQueues, are_in_tables_as_many_and_as_large_as_the_device_says) {
  const ibv_rss_caps caps = device().rss_caps;
  const Wq wq = make();
  const std::vector<ibv_wq*> entries(caps.max_rwq_indirection_table_size, wq.get());
  const IndirectionTable largest = make_table(context.get(), entries);
  ASSERT_TRUE(largest);
  EXPECT_TRUE(rss_qp(pd.get(), largest.get()));
  std::vector<IndirectionTable> made;
  for (std::uint32_t i = 1; i < caps.max_rwq_indirection_tables; ++i) {
    made.push_back(make_table(context.get(), {wq.get()}));
    ASSERT_TRUE(made.back()) << i;
  }
  errno = 0;
  EXPECT_FALSE(make_table(context.get(), {wq.get()}));
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(WorkQueues, are_refused_in_tables_that_are_not_there) {
  const Context elsewhere = open_device();
  const Pd other_pd(ibv_alloc_pd(elsewhere.get()));
  const Cq other_cq(ibv_create_cq(elsewhere.get(), 16, nullptr, nullptr, 0));
  const Wq wq = make(), foreign = ready_wq(other_pd.get(), other_cq.get());
  const std::uint32_t largest = device().rss_caps.max_rwq_indirection_table_size;
  ibv_wq* const none = nullptr;
  struct Row {
    const char* name;
    std::vector<ibv_wq*> entries;
    std::uint32_t comp_mask;
    int error;
  };
  const Row rows[] = {{"larger", std::vector<ibv_wq*>(std::size_t{2} * largest, wq.get()), 0, EINVAL},
                      {"with a hole", {wq.get(), none}, 0, EINVAL},
                      {"with another context's", {wq.get(), foreign.get()}, 0, EINVAL},
                      {"of a later release", {wq.get()}, IBV_CREATE_IND_TABLE_RESERVED, EOPNOTSUPP}};
  for (Row row : rows) {
    ibv_rwq_ind_table_init_attr init{};
    while ((1u << init.log_ind_tbl_size) < row.entries.size()) ++init.log_ind_tbl_size;
    init.ind_tbl = row.entries.data();
    init.comp_mask = row.comp_mask;
    errno = 0;
    EXPECT_EQ(ibv_create_rwq_ind_table(context.get(), &init), nullptr) << row.name;
    EXPECT_EQ(errno, row.error) << row.name;
  }
  for (const std::uint32_t log_size : {32u, 64u, 0xffffffffu}) {
    ibv_rwq_ind_table_init_attr init{.log_ind_tbl_size = log_size, .ind_tbl = nullptr, .comp_mask = 0};
    EXPECT_EQ(ibv_create_rwq_ind_table(context.get(), &init), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

}  // namespace
}  // namespace weir::verbs_test
