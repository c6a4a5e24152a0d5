// One CQ for both the sends and the receives of a queue pair.
#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class SharedCq : public VerbsTest, public testing::WithParamInterface<std::size_t> {};

// A program that posts a send for each that completes (qperf's uc_bi_bw), polled into arrays of some size.
TEST_P(SharedCq, sends_that_fill_the_array_do_not_keep_what_arrived_from_being_polled) {
  constexpr std::uint64_t sent = 1, received = 2;
  const Cq cq = make_cq(), other_cq = make_cq();
  const QpOptions unreliable{.type = IBV_QPT_UC};
  const Qp qp = make_qp(cq.get(), unreliable), other = make_qp(other_cq.get(), unreliable);
  connect(qp.get(), other.get());
  Buffer memory{pd.get(), 64};
  ibv_sge sge = memory.sge(0, 8);
  ASSERT_EQ(post_recv(qp.get(), received, memory.all()), 0);
  ASSERT_EQ(post(other.get(), send_wr(3, sge)), 0);  // has arrived
  std::vector<ibv_wc> array(GetParam());
  for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(post(qp.get(), send_wr(sent, sge)), 0);
  for (int round = 0; round < 2; ++round) {
    const int count = ibv_poll_cq(cq.get(), static_cast<int>(array.size()), array.data());
    for (int i = 0; i < count; ++i) {
      if (array[static_cast<std::size_t>(i)].wr_id == received) return;
      ASSERT_EQ(post(qp.get(), send_wr(sent, sge)), 0);
    }
  }
  FAIL() << "two polls brought sends alone";
}

INSTANTIATE_TEST_SUITE_P(arrays, SharedCq, testing::Values(1, 2, 16));

}  // namespace
}  // namespace weir::verbs_test
