// A hub is killed at a random moment, again and again. Its reader is told soon, with the generation of the
// hub that is gone, and never sees a byte that is not of the version and hub that it is given.
//
// "Soon" is measured from the end of the hub's process, without the time in which threads of the reader
// waited for a core: both are up to the machine. The rest is our own delay, and does not depend on how busy
// the machine is.
//
// KILLED_SUITE, KILLED_HUBS: the number of kills in every test run, and in the slow one; WEIR_TEST_KILLS
// overrides it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/piped_child.hpp"
#include "tests/tensor/core_waits.hpp"
#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing_support::core_wait_of_this_thread;
using testing_support::core_waits_but_of;
using testing_support::must;
using testing_support::test_provider;
using testing_support::values;

// Kills a process after a given time, and records when.
class Killer {
 public:
  Killer(pid_t victim, std::chrono::microseconds life)
      : thread_([this, victim, life] {
          std::this_thread::sleep_for(life);  // a random moment, which is the point of the test
          self_ = ::gettid();
          waits_of_reader_ = core_waits_but_of(self_);
          kill_ = Clock::now();
          killed_ = true;
          ::kill(victim, SIGKILL);
          const std::chrono::nanoseconds before = core_wait_of_this_thread();
          siginfo_t info;
          ::waitid(P_PID, static_cast<id_t>(victim), &info, WEXITED | WNOWAIT);
          const Clock::time_point seen = Clock::now();
          end_ = seen - (core_wait_of_this_thread() - before);
        }) {}

  bool killed() const { return killed_; }
  // Waits until the process has ended, without reaping it.
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  struct Delay {
    Clock::duration after_kill, ours;
  };
  // The delay of an error that is seen now.
  Delay heard_now() {
    const Clock::time_point now = Clock::now();
    const std::chrono::nanoseconds waits = core_waits_but_of(self_);
    join();
    const Clock::duration rest = now - end_ - (waits - waits_of_reader_);
    return {now - kill_, std::max(rest, Clock::duration::zero())};
  }

 private:
  std::atomic<bool> killed_ = false;  // stored after the members that it guards
  pid_t self_ = 0;
  std::chrono::nanoseconds waits_of_reader_{0};
  Clock::time_point kill_, end_;
  std::jthread thread_;
};

struct KILLED_SUITE : testing::TestWithParam<const char*> {
  std::uint64_t generation = 0;  // the running hub's
  std::string address;
  std::unique_ptr<test::PipedChild> child;

  void start_hub(const std::string& at) {
    child = std::make_unique<test::PipedChild>(std::vector<std::string>{KILLED_HUB, at});
    const std::string line = child->line();
    const std::size_t space = line.find(' ');
    ASSERT_NE(space, std::string::npos) << "no hub: " << line;
    address = line.substr(0, space);
    generation = std::strtoull(line.c_str() + space, nullptr, 10);
  }
  void expect_whole(const Fetched& fetched) const {
    ASSERT_EQ(fetched.generation, generation) << "of another hub";
    for (const std::uint64_t each : values(fetched))
      ASSERT_EQ(each, fetched.generation + fetched.version) << "stale or torn";
  }
};

TEST_P(KILLED_SUITE, leaves_its_reader_a_typed_error_and_no_stale_byte) {
  const char* given = std::getenv("WEIR_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  ASSERT_NO_FATAL_FAILURE(start_hub(std::string(GetParam()) + "://127.0.0.1:0"));
  const auto peer = must(Peer::connect(address, test_provider()));
  std::vector<Clock::duration> after_kill, ours;
  std::uint64_t fetches = 0;
  const char* wanted = std::getenv("WEIR_TEST_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : KILLED_HUBS;
  for (int killed_hubs = 0; killed_hubs < kills; ++killed_hubs) {
    const std::string name = random() % 2 == 0 ? "small" : "large";
    const std::chrono::microseconds life(random() % 5000);
    ASSERT_NO_FATAL_FAILURE(expect_whole(must(peer->fetch("small"))));  // connected to the running hub
    Killer killer(child->pid(), life);
    std::uint64_t last = 0;
    while (true) {
      const auto fetched = peer->fetch(name, {.newer_than = last, .generation = generation, .timeout = 30s});
      if (fetched) {
        ASSERT_GT(fetched->version, last);
        ASSERT_NO_FATAL_FAILURE(expect_whole(*fetched));
        last = fetched->version;
        ++fetches;
        continue;
      }
      if (fetched.error().code == Errc::superseded) continue;
      // A reader that READs may lose a superseded version, and with it its connection; then the hub may be
      // killed while the reader reconnects.
      const bool connecting = fetched.error().code == Errc::unreachable;
      ASSERT_TRUE(connecting || fetched.error().code == Errc::peer_gone) << fetched.error().what;
      if (!killer.killed()) continue;
      if (connecting) break;
      const Killer::Delay delay = killer.heard_now();
      after_kill.push_back(delay.after_kill);
      ours.push_back(delay.ours);
      EXPECT_EQ(fetched.error().generation, generation);
      break;
    }
    killer.join();
    child->kill();
    ASSERT_NO_FATAL_FAILURE(start_hub(address));
  }
  ASSERT_FALSE(ours.empty());
  std::ranges::sort(after_kill);
  std::ranges::sort(ours);
  const auto ms = [](Clock::duration each) {
    return std::chrono::duration<double, std::milli>(each).count();
  };
  const auto median = [](const auto& sorted) { return sorted[sorted.size() / 2]; };
  std::printf(
      "%llu whole fetches; peer_gone after %.2f ms (median), %.2f ms at most; of that ours %.2f and %.2f "
      "ms\n",
      static_cast<unsigned long long>(fetches), ms(median(after_kill)), ms(after_kill.back()),
      ms(median(ours)), ms(ours.back()));
  EXPECT_LT(ours[ours.size() * 9 / 10], 100ms);
  EXPECT_LT(after_kill.back(), 5s);
}
INSTANTIATE_TEST_SUITE_P(By, KILLED_SUITE, testing::Values("rdma", "tcp"),
                         [](const auto& row) { return std::string(row.param); });

}  // namespace
}  // namespace weir::tensor
