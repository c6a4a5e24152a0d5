// Another process's counters, read through the private ABI that `weir stat` uses.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "peer_process.hpp"
#include "verbs/monitor/statistics.hpp"
#include "work_queues.hpp"

namespace weir::verbs_test {
namespace {

using verbs::ProcessSeen;
using verbs::QueuePairSeen;

struct Process {
  ProcessSeen seen;
  std::vector<QueuePairSeen> queue_pairs;
};

class MonitorTest : public testing::Test {
 protected:
  void SetUp() override {
    side.emplace(MemoryKind::ordinary, 4096);
    far = peer.order({.order = Order::open, .kind = MemoryKind::ordinary, .length = 4096}).address;
    ASSERT_EQ(peer.order({.order = Order::connect, .peer = side->address()}).error, 0);
    ASSERT_EQ(bring_up(side->qp.get(), far.qpn), 0);
    std::array<char, 256> why{};
    monitor = weir_monitor_open(nullptr, why.data(), why.size());
    ASSERT_NE(monitor, nullptr) << why.data();
  }
  void TearDown() override {
    if (monitor != nullptr) weir_monitor_close(monitor);
  }
  std::vector<Process> look() {
    std::vector<Process> processes;
    const auto visit = [](void* into, const ProcessSeen* seen) {
      static_cast<std::vector<Process>*>(into)->push_back(
          {*seen, {seen->queue_pairs, seen->queue_pairs + seen->queue_pair_count}});
    };
    EXPECT_EQ(weir_monitor_look(monitor, visit, &processes), 0);
    return processes;
  }
  // The process with that queue pair; none: it is not shown.
  std::optional<Process> process_with(std::uint32_t qpn) {
    for (const Process& process : look())
      for (const QueuePairSeen& qp : process.queue_pairs)
        if (qp.number == qpn) return process;
    return std::nullopt;
  }

  PeerProcess peer;
  std::optional<Side> side;
  SideAddress far;
  verbs::Monitor* monitor = nullptr;
};

TEST_F(MonitorTest, a_target_that_does_nothing_shows_what_was_written_to_it) {
  constexpr int writes = 100;
  for (int i = 0; i < writes; ++i) {
    ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, 512, far), 0);
    ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
  }
  const auto theirs = process_with(far.qpn), ours = process_with(side->qp->qp_num);
  ASSERT_TRUE(theirs && ours);
  EXPECT_EQ(theirs->seen.sums.writes_served, std::uint64_t{writes});
  EXPECT_EQ(theirs->seen.sums.served_bytes_in, std::uint64_t{writes} * 512);
  EXPECT_EQ(theirs->seen.sums.writes, 0u);
  EXPECT_EQ(ours->seen.sums.writes, std::uint64_t{writes});
  EXPECT_EQ(ours->seen.sums.bytes_out, std::uint64_t{writes} * 512);
  EXPECT_EQ(ours->seen.sums.send_completions, std::uint64_t{writes});
  EXPECT_EQ(ours->seen.sums.doorbells, std::uint64_t{writes});
}

TEST_F(MonitorTest, a_queue_pair_is_shown_with_its_state_and_its_peer) {
  const auto theirs = process_with(far.qpn);
  ASSERT_TRUE(theirs);
  ASSERT_EQ(theirs->queue_pairs.size(), 1u);
  EXPECT_EQ(theirs->queue_pairs[0].peer_number, side->qp->qp_num);
  EXPECT_STREQ(theirs->queue_pairs[0].type, "RC");
  EXPECT_STREQ(theirs->queue_pairs[0].state, "RTS");
  EXPECT_NE(theirs->seen.pid, ::getpid());
  EXPECT_EQ(theirs->seen.bytes, sizeof(ProcessSeen));
}

TEST_F(MonitorTest, work_queues_are_shown_among_the_queue_pairs) {
  const Wq wq = ready_wq(side->pd.get(), side->cq.get());
  const IndirectionTable table = make_table(side->context.get(), {wq.get()});
  const Qp qp = rss_qp(side->pd.get(), table.get());
  const auto ours = process_with(wq->wq_num);
  ASSERT_TRUE(ours);
  const auto shown = [&](std::uint32_t number) {
    return *std::ranges::find(ours->queue_pairs, number, &QueuePairSeen::number);
  };
  EXPECT_STREQ(shown(wq->wq_num).type, "WQ");
  EXPECT_STREQ(shown(wq->wq_num).state, "RDY");
  EXPECT_STREQ(shown(qp->qp_num).type, "RSS");
}

TEST_F(MonitorTest, a_killed_process_is_not_shown) {
  ASSERT_TRUE(process_with(far.qpn));
  peer.kill();
  // The link learns of it on its own thread.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (process_with(far.qpn) && std::chrono::steady_clock::now() < give_up) sched_yield();
  EXPECT_FALSE(process_with(far.qpn));
}

TEST_F(MonitorTest, what_is_destroyed_stays_in_the_sums_of_its_process) {
  ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, 512, far), 0);
  ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
  ASSERT_EQ(peer.order({.order = Order::destroy}).error, 0);
  const std::vector<Process> all = look();
  const auto emptied = std::ranges::find(all, 0u, [](const Process& p) { return p.queue_pairs.size(); });
  ASSERT_NE(emptied, all.end());
  EXPECT_EQ(emptied->seen.sums.writes_served, 1u);
}

TEST_F(MonitorTest, several_may_look_and_none_is_shown_itself) {
  verbs::Monitor* const second = weir_monitor_open(nullptr, nullptr, 0);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(look().size(), 2u);
  weir_monitor_close(second);
}

}  // namespace
}  // namespace weir::verbs_test
