// Polls that give way to others on this processor: sched_yield() is ours here, so what the others do then is
// known.
#include <functional>
#include <utility>

#include "verbs_test.hpp"

namespace {

thread_local std::function<void()> others_run;

}  // namespace

extern "C" int sched_yield() noexcept {
  if (const auto run = std::exchange(others_run, nullptr)) run();
  return 0;
}

namespace weir::verbs_test {
namespace {

struct Way {
  const char* name;
  bool (*polls_one)(ibv_cq_ex*);
};

class Polling : public VerbsTest, public testing::WithParamInterface<Way> {};

INSTANTIATE_TEST_SUITE_P(By, Polling,
                         testing::Values(Way{"ibv_poll_cq",
                                             [](ibv_cq_ex* cq) {
                                               ibv_wc wc;
                                               return ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc) == 1;
                                             }},
                                         Way{"ibv_start_poll",
                                             [](ibv_cq_ex* cq) {
                                               ibv_poll_cq_attr attr{};
                                               if (ibv_start_poll(cq, &attr) != 0) return false;
                                               ibv_end_poll(cq);
                                               return true;
                                             }}),
                         [](const auto& row) { return std::string(row.param.name); });

// libfabric looks for the end of a connection when a poll has found nothing, and drops what comes after it.
TEST_P(Polling, finds_what_came_while_it_gave_way) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  Cq cq(ibv_cq_ex_to_cq(ibv_create_cq_ex(context.get(), &attr)));
  ASSERT_TRUE(cq);
  auto* const ex = reinterpret_cast<ibv_cq_ex*>(cq.get());
  const Cq other = make_cq();
  const Qp sender = make_qp(other.get()), receiver = make_qp(cq.get());
  connect(sender.get(), receiver.get());
  Buffer from(pd.get(), 8), into(pd.get(), 8);
  ASSERT_EQ(post_recv(receiver.get(), 1, into.all()), 0);
  others_run = [&] {
    ibv_sge sge = from.all();
    EXPECT_EQ(post(sender.get(), send_wr(2, sge)), 0);
  };
  constexpr int more_than_before_a_yield = 1'000;
  bool found = false;
  for (int polls = 0; others_run != nullptr && polls < more_than_before_a_yield; ++polls) {
    ASSERT_FALSE(found) << "before anything was sent";
    found = GetParam().polls_one(ex);
  }
  ASSERT_EQ(others_run, nullptr) << "no poll gave way";
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace weir::verbs_test
