// A thread that is looked at for a loop on memory ends, and is sent signals, as if nobody had looked.
#include "twin/memory_spin.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

namespace weir::twin {
namespace {

constexpr unsigned rounds = 8;

// So that a signal that was sent is still under way when the process is looked at.
void stay_on_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

// A process that spins, and its parent, which waits for its end.
class Spinning {
 public:
  Spinning() {
    EXPECT_EQ(::pipe(pipe_.data()), 0);
    parent_ = ::fork();
    if (parent_ == 0) wait_for_spinning();
    EXPECT_EQ(::read(pipe_[0], &pid_, sizeof pid_), ssize_t{sizeof pid_});
  }
  ~Spinning() {
    ::kill(parent_, SIGKILL);  // and so the other
    ::waitpid(parent_, nullptr, 0);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  Spinning(const Spinning&) = delete;
  Spinning& operator=(const Spinning&) = delete;

  pid_t pid() const { return pid_; }
  // The signal that ended it, as its parent sees it.
  int ended_by() const {
    int status = 0;
    EXPECT_EQ(::read(pipe_[0], &status, sizeof status), ssize_t{sizeof status});
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  [[noreturn]] void wait_for_spinning() {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const pid_t own = ::getpid();
      if (::write(pipe_[1], &own, sizeof own) != sizeof own) ::_exit(1);
      for (volatile int nothing = 0; nothing == 0;) {
      }
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::_exit(::write(pipe_[1], &status, sizeof status) == sizeof status ? 0 : 1);
  }

  std::array<int, 2> pipe_{};
  pid_t parent_ = 0, pid_ = 0;
};

class MemorySpinEnds : public testing::TestWithParam<int> {};

TEST_P(MemorySpinEnds, while_it_is_looked_at) {
  stay_on_one_processor();
  for (unsigned round = 0; round < rounds; ++round) {
    const Spinning spinning;
    ::kill(spinning.pid(), GetParam());
    (void)MemorySpin::prove(spinning.pid(), spinning.pid());
    EXPECT_EQ(spinning.ended_by(), GetParam()) << "round " << round;
  }
}

TEST_P(MemorySpinEnds, while_it_is_stopped) {
  for (unsigned round = 0; round < rounds; ++round) {
    const Spinning spinning;
    auto proved = MemorySpin::prove(spinning.pid(), spinning.pid());
    while (proved == nullptr) proved = MemorySpin::prove(spinning.pid(), spinning.pid());  // it has not begun
    ::kill(spinning.pid(), GetParam());
    proved.reset();
    EXPECT_EQ(spinning.ended_by(), GetParam()) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(by, MemorySpinEnds, testing::Values(SIGTERM, SIGKILL, SIGABRT, SIGUSR1),
                         [](const auto& row) { return std::string(::sigabbrev_np(row.param)); });

}  // namespace
}  // namespace weir::twin
