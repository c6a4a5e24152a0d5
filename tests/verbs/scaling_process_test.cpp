// Receive-side scaling between processes: senders read the hash and the table in this process's segment.
#include <array>
#include <set>

#include "process_test.hpp"
#include "work_queues.hpp"

namespace weir::verbs_test {
namespace {

constexpr std::size_t frame_bytes = 256;

class ScalingProcess : public ProcessTest {
 protected:
  ScalingProcess() {
    side.emplace(MemoryKind::ordinary, memory_bytes);
    open_peer(peer, MemoryKind::ordinary);
    ibv_pd* const pd = side->pd.get();
    for (std::size_t i = 0; i < wqs.size(); ++i) {
      cqs[i] = Cq(ibv_create_cq(pd->context, 128, nullptr, nullptr, 0));
      wqs[i] = ready_wq(pd, cqs[i].get());
      for (std::uint64_t place = 0; place < 64; ++place)
        EXPECT_EQ(post_recv(wqs[i].get(), place, side->sge((i * 64 + place) * frame_bytes, frame_bytes)), 0);
    }
    table = make_table(pd->context, {wqs[0].get(), wqs[1].get()});
    qp = rss_qp(pd, table.get());
    flow = Flow(ibv_create_flow(qp.get(), FlowAttributes().get()));
    EXPECT_TRUE(flow);
  }
  // The last byte of each source address that arrived at the work queue.
  std::multiset<int> addresses(std::size_t queue) {
    constexpr std::size_t last_byte_of_source = 14 + 15;
    std::multiset<int> all;
    while (const auto wc = poll_once(cqs[queue].get())) {
      EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc->qp_num, wqs[queue]->wq_num);
      all.insert(side->bytes()[(queue * 64 + wc->wr_id) * frame_bytes + last_byte_of_source]);
    }
    return all;
  }

  std::array<Cq, 2> cqs;
  std::array<Wq, 2> wqs;
  IndirectionTable table;
  Qp qp;
  Flow flow;
};

TEST_F(ScalingProcess, a_senders_frames_are_in_the_work_queues_of_their_hashes) {
  EXPECT_EQ(peer.order({.order = Order::send_frames, .count = 8}).succeeded, 8u);
  EXPECT_EQ(addresses(0), (std::multiset<int>{0, 2, 4, 6}));
  EXPECT_EQ(addresses(1), (std::multiset<int>{1, 3, 5, 7}));
}

TEST_F(ScalingProcess, several_senders_fill_the_same_work_queues_at_once) {
  PeerProcess other;
  open_peer(other, MemoryKind::ordinary);
  const Request request{.order = Order::send_frames, .count = 60};
  peer.start(request);
  other.start(request);
  EXPECT_EQ(peer.finish().succeeded, 60u);
  EXPECT_EQ(other.finish().succeeded, 60u);
  for (const std::size_t queue : {0u, 1u}) {
    const std::multiset<int> came = addresses(queue);
    EXPECT_EQ(came.size(), 60u);
    for (int address = static_cast<int>(queue); address < 60; address += 2)
      EXPECT_EQ(came.count(address), 2u) << "one from each";
  }
}

TEST_F(ScalingProcess, a_killed_sender_leaves_the_work_queues_to_the_next) {
  EXPECT_EQ(peer.order({.order = Order::send_frames, .count = 4}).succeeded, 4u);
  peer.start({.order = Order::send_frames, .count = 1'000'000});
  peer.kill();
  while (poll_once(cqs[0].get()) || poll_once(cqs[1].get())) {
  }
  for (const Wq& wq : wqs) {
    ASSERT_EQ(move(wq.get(), IBV_WQS_RESET), 0);
    ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
  }
  ASSERT_EQ(post_recv(wqs[1].get(), 0, side->sge(64 * frame_bytes, frame_bytes)), 0);
  PeerProcess next;
  open_peer(next, MemoryKind::ordinary);
  EXPECT_EQ(next.order({.order = Order::send_frames, .count = 2}).succeeded, 2u);
  EXPECT_TRUE(completed(wait_for(cqs[1].get()), 0));
}

}  // namespace
}  // namespace weir::verbs_test
