// The front ports of a switch, and the ways to split each.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::fabric {

// One way to use a front port: as so many ports, each with at most this speed.
struct Breakout {
  std::uint32_t parts = 1;
  std::uint64_t speed_bps = 0;
};

// Front ports that are alike: EthernetN, N = first, first + step, ...; their lanes follow N.
struct PortRange {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  std::uint32_t step = 4;
  std::uint32_t lanes = 4;
  std::vector<Breakout> modes;  // not empty; ordered by the number of parts
};

}  // namespace weir::fabric
