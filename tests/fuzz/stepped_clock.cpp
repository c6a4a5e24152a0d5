#include "tests/fuzz/stepped_clock.hpp"

#include <sys/timerfd.h>

#include <cerrno>

namespace {
using Clock = std::chrono::steady_clock;
// Longer than a poller looks before it sleeps (rpc/transport/poller.hpp), which otherwise spins for as many
// looks.
constexpr std::chrono::microseconds step{100};
constexpr Clock::time_point beginning{std::chrono::hours(1)};
Clock::time_point now_is = beginning;
}  // namespace

// In place of the C++ library's.
Clock::time_point std::chrono::steady_clock::now() noexcept { return now_is += step; }

// In place of the C library's: without such a descriptor Asio looks at the clock after every poll.
extern "C" int timerfd_create(clockid_t, int) noexcept {
  errno = ENOSYS;
  return -1;
}

namespace weir::fuzz {

void restart_clock() { now_is = beginning; }
void pass(std::chrono::microseconds time) { now_is += time; }

}  // namespace weir::fuzz
