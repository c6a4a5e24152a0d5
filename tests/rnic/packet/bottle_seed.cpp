// Derives a connection, its operations, its network and its receives from one number.
#include <gtest/gtest.h>

#include "bottle.hpp"

namespace weir::rnic::packet::test {

void play_seed(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  constexpr std::uint32_t mtus[] = {256, 1024, 4096};
  Options options{.path_mtu = mtus[below(3)]};
  options.first_psn = below(2) != 0 ? Psn(0xfffff0) : Psn(static_cast<std::uint32_t>(random()));
  options.max_rd_atomic = static_cast<std::uint8_t>(1 + below(16));
  const std::uint64_t loss = below(4) * 30, doubling = below(3) * 30, delay = below(3) * 60;  // of 1000
  const std::uint64_t corruption = below(3) == 0 ? 20 : 0;
  options.ipv4 = corruption == 0 && below(2) != 0;  // one corrupted packet of 65536 has some IPv4 ID
  options.retry_cnt = 7;
  options.timeout = 18;  // a second: the probe must do it
  const bool scarce = below(3) == 0;
  if (scarce) options.receives = static_cast<std::uint32_t>(below(3));
  options.min_rnr_timer = static_cast<std::uint8_t>(1 + below(12));
  if (seed % 4 == 0) options.service = wire::Service::xrc;

  Bottle bottle(options, static_cast<std::uint32_t>(seed));
  std::mt19937_64 network(seed + 1);
  bottle.fate = [&](std::uint64_t) {
    Fate fate;
    fate.dropped = network() % 1000 < loss;
    fate.corrupted = network() % 1000 < corruption;
    if (network() % 1000 < doubling) fate.copies = 2;
    if (network() % 1000 < delay) fate.delayed_ns = network() % (200 * microsecond);
    return fate;
  };
  for (std::uint32_t from : {0u, 1u}) {
    End& end = *bottle.ends[from];
    End& other = *bottle.ends[1 - from];
    auto operations = random_operations(random, below(25), options.path_mtu);
    if (options.service == wire::Service::xrc) spread_over_srqs(operations);
    // Some at once, the others while it runs.
    for (const Operation& op : operations) {
      if (below(2) != 0 && end.operations.size() == static_cast<std::size_t>(&op - operations.data()))
        end.post(other, op);
      else
        bottle.at(1 + below(3) * 30 * microsecond +
                      static_cast<std::uint64_t>(&op - operations.data()) * 100 * microsecond,
                  [&end, &other, op] { end.post(other, op); });
    }
    if (scarce)
      for (std::uint64_t i = 0; i < operations.size() + 2; ++i)
        bottle.at(i * 300 * microsecond, [&other] { ++other.receives_left; });
  }
  ASSERT_TRUE(bottle.run()) << "it never ends";
  ASSERT_EQ(bottle.differences(), "");
}

}  // namespace weir::rnic::packet::test
