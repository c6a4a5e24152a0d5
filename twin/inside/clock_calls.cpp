// Clocks and sleeps. The day begins at 2026-01-01 00:00 UTC, and the machine was started 1000 s before.
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "twin/inside/clocks.hpp"

namespace weir::twin {
namespace {

bool valid(const timespec* time) {
  return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < 1'000'000'000;
}

// Until the deadline, or until a signal handler has run.
int sleep_until(Ticks deadline, timespec* left) {
  while (now() < deadline) {
    if (!wait_for({.kind = Wait::time, .deadline = deadline, .what = "sleep"})) continue;
    if (left != nullptr) *left = timespec_of(deadline > now() ? deadline - now() : 0);
    return EINTR;
  }
  if (left != nullptr) *left = {};
  return 0;
}

}  // namespace

std::uint64_t base_seconds(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
    case CLOCK_REALTIME_ALARM:
      return first_second;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
      return 0;
    default:
      return uptime_seconds;
  }
}

Ticks ticks_of(const timespec& time) {
  constexpr std::int64_t longest_s = 100'000'000;
  const auto seconds =
      static_cast<std::uint64_t>(std::min<std::int64_t>(std::max<std::int64_t>(time.tv_sec, 0), longest_s));
  return seconds * ticks_per_s + static_cast<std::uint64_t>(time.tv_nsec) * ticks_per_ns;
}

timespec timespec_of(Ticks at, std::uint64_t base_s) {
  return {.tv_sec = static_cast<time_t>(base_s + at / ticks_per_s),
          .tv_nsec = static_cast<long>(at % ticks_per_s / ticks_per_ns)};
}

Ticks deadline_of(clockid_t clock, const timespec& absolute) {
  const auto base = static_cast<std::int64_t>(base_seconds(clock));
  if (absolute.tv_sec < base) return 0;
  return ticks_of({absolute.tv_sec - base, absolute.tv_nsec});
}

}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

int clock_gettime(clockid_t clock, timespec* at) noexcept {
  if (!controlled()) return WEIR_NEXT(clock_gettime)(clock, at);
  *at = timespec_of(read_clock(), base_seconds(clock));
  return 0;
}

int clock_getres(clockid_t clock, timespec* resolution) noexcept {
  if (!controlled()) return WEIR_NEXT(clock_getres)(clock, resolution);
  if (resolution != nullptr) *resolution = {0, 1};
  return 0;
}

int gettimeofday(timeval* at, void* zone) noexcept {
  if (!controlled()) return WEIR_NEXT(gettimeofday)(at, zone);
  const timespec whole = timespec_of(read_clock(), base_seconds(CLOCK_REALTIME));
  *at = {whole.tv_sec, whole.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* at) noexcept {
  if (!controlled()) return WEIR_NEXT(time)(at);
  const time_t seconds = timespec_of(read_clock(), base_seconds(CLOCK_REALTIME)).tv_sec;
  if (at != nullptr) *at = seconds;
  return seconds;
}

clock_t clock() noexcept {
  if (!controlled()) return WEIR_NEXT(clock)();
  return static_cast<clock_t>(read_clock() / (ticks_per_s / CLOCKS_PER_SEC));
}

int nanosleep(const timespec* wanted, timespec* left) {
  if (!controlled()) return WEIR_NEXT(nanosleep)(wanted, left);
  if (!valid(wanted)) return errno = EINVAL, -1;
  const int error = sleep_until(now() + ticks_of(*wanted), left);
  return error == 0 ? 0 : (errno = error, -1);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* wanted, timespec* left) {
  if (!controlled()) return WEIR_NEXT(clock_nanosleep)(clock, flags, wanted, left);
  if (!valid(wanted)) return EINVAL;
  if ((flags & TIMER_ABSTIME) != 0) return sleep_until(deadline_of(clock, *wanted), nullptr);
  return sleep_until(now() + ticks_of(*wanted), left);
}

int usleep(useconds_t microseconds) {
  if (!controlled()) return WEIR_NEXT(usleep)(microseconds);
  const int error = sleep_until(after_ns(std::uint64_t{microseconds} * 1000), nullptr);
  return error == 0 ? 0 : (errno = error, -1);
}

unsigned sleep(unsigned seconds) {
  if (!controlled()) return WEIR_NEXT(sleep)(seconds);
  timespec left{};
  const timespec wanted{static_cast<time_t>(seconds), 0};
  if (sleep_until(now() + ticks_of(wanted), &left) == 0) return 0;
  return static_cast<unsigned>(left.tv_sec) + (left.tv_nsec != 0 ? 1u : 0u);
}

int sched_yield() noexcept {
  if (!controlled()) return WEIR_NEXT(sched_yield)();
  wait_for({.kind = Wait::time, .deadline = now() + 100 * ticks_per_ns, .what = "sched_yield"});
  return 0;
}
}
