#include "rpc/wire/deadline.hpp"

#include <gtest/gtest.h>
#include <time.h>

namespace weir::rpc {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

Deadline reading(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return Deadline(seconds(time.tv_sec) + nanoseconds(time.tv_nsec));
}

nanoseconds tick() {
  timespec resolution{};
  clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
  return seconds(resolution.tv_sec) + nanoseconds(resolution.tv_nsec);
}

TEST(Deadline, OfLessThanASecondIsExact) {
  const microseconds timeout(999'999);
  const Deadline before = reading(CLOCK_MONOTONIC);
  const Deadline deadline = deadline_in(timeout);
  EXPECT_GE(deadline, before + timeout);
  EXPECT_LE(deadline, reading(CLOCK_MONOTONIC) + timeout);
}

// The kernel's clock may be more than a tick behind if a hypervisor delayed the tick.
TEST(Deadline, OfASecondIsATickAfterTheKernelsClock) {
  const microseconds timeout(1'000'000);
  const Deadline before = reading(CLOCK_MONOTONIC_COARSE);
  const Deadline deadline = deadline_in(timeout);
  EXPECT_GE(deadline, before + timeout + tick());
  EXPECT_LE(deadline, reading(CLOCK_MONOTONIC_COARSE) + timeout + tick());
  EXPECT_LE(deadline, reading(CLOCK_MONOTONIC) + timeout + tick());
}

TEST(Deadline, BeyondTheEndOfTimeIsNone) {
  EXPECT_EQ(deadline_in(microseconds::max()), no_deadline);
  EXPECT_EQ(deadline_from(reading(CLOCK_MONOTONIC), std::chrono::milliseconds::max()), no_deadline);
}

}  // namespace
}  // namespace weir::rpc
