// More seeds than an ordinary test run has time for.
#include <gtest/gtest.h>

#include "bottle.hpp"

namespace weir::rnic::packet::test {
namespace {

TEST(BottleSlow, a_hundred_thousand_random_exchanges) {
  for (std::uint64_t seed = 1'001; seed <= 100'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    play_seed(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace weir::rnic::packet::test
