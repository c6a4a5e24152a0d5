// Runs become shorter on a path that loses them, and come back.
#include "rnic/packet/run_length.hpp"

#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

using packet::RunLength;
constexpr std::uint64_t second = 1'000'000'000;

TEST(RunLength, halves_for_the_first_loss_and_ends_with_the_next) {
  RunLength runs;
  EXPECT_EQ(runs.limit(0), 64u);
  runs.lost(1);
  EXPECT_EQ(runs.limit(1), 32u);
  EXPECT_FALSE(runs.gave_up());
  runs.lost(2);
  EXPECT_EQ(runs.limit(2), 1u);
  EXPECT_TRUE(runs.gave_up());
  EXPECT_FALSE(runs.gave_up()) << "said once";
}

TEST(RunLength, halves_again_if_runs_arrived_meanwhile) {
  RunLength runs;
  runs.lost(1);
  runs.arrived();
  runs.lost(2);
  EXPECT_EQ(runs.limit(2), 16u);
}

TEST(RunLength, comes_back_step_by_step) {
  RunLength runs;
  runs.lost(0);
  runs.lost(0);
  EXPECT_EQ(runs.limit(10 * second - 1), 1u);
  for (std::uint64_t step = 1; step <= 6; ++step) EXPECT_EQ(runs.limit(step * 10 * second), 1u << step);
  EXPECT_EQ(runs.limit(1'000 * second), 64u);
}

TEST(RunLength, is_tried_less_often_each_time_that_it_fails) {
  RunLength runs;
  runs.lost(0);
  runs.lost(0);
  EXPECT_EQ(runs.limit(10 * second), 2u);
  runs.lost(10 * second);
  EXPECT_EQ(runs.limit(29 * second), 1u);
  EXPECT_EQ(runs.limit(30 * second), 2u);
  runs.lost(30 * second);
  EXPECT_EQ(runs.limit(69 * second), 1u);
  EXPECT_EQ(runs.limit(70 * second), 2u);
}

// Nothing that left with another packet arrives.
class PathWithoutRuns : public TwoHosts {
 protected:
  PathWithoutRuns() {
    a_nic.on_packets = b_nic.on_packets = [this](const PacketRoute& route, std::span<const PacketRun> sent) {
      for (const PacketRun& run : sent)
        if (run.bytes.size() <= run.segment) take(route, {&run, 1});
    };
    connect_hosts();
  }
  // What the thirtieth message takes, in ms of the test's clock.
  template <class Post>
  void carries(const Post& post) {
    for (int message = 0; message < 30; ++message) {
      const std::uint64_t began = host.now_ns();
      ASSERT_EQ(post(), PostResult::ok);
      std::optional<WorkCompletion> done;
      ASSERT_TRUE(carry_until([&] { return (done = a->poll_send()).has_value(); }));
      ASSERT_EQ(done->status, WcStatus::success);
      const std::uint64_t took_ms = (host.now_ns() - began) / 1'000'000;
      EXPECT_LE(took_ms, message == 0 ? 100u : 0u) << message;
    }
  }
  Memory mine{a_nic, 65'536, all_access, Reach::mapped}, other{b_nic, 65'536, all_access, Reach::mapped};
};

TEST_F(PathWithoutRuns, carries_writes_after_the_first_at_full_speed) {
  carries([&] { return a->write(1, mine.all(), other.addr(), other.key()); });
  EXPECT_EQ(mine.part(0, mine.size()), other.part(0, other.size()));
}

TEST_F(PathWithoutRuns, carries_reads_after_the_first_at_full_speed) {
  carries([&] { return a->read(1, mine.all(), other.addr(), other.key()); });
}

}  // namespace
}  // namespace weir::rnic::test
