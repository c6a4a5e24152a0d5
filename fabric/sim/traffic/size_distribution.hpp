// Message sizes in data centres: published cumulative distributions, as data. They are sampled by inversion,
// with straight lines between their points.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fabric/sim/random.hpp"

namespace weir::fabric::sim {

struct SizePoint {
  double bytes;
  double part;  // of the messages that are at most so large
};

struct SizeDistribution {
  std::string_view name;
  std::string_view what;
  std::span<const SizePoint> points;  // ascending; the first has part 0, the last has 1

  std::uint64_t sample(Random& random) const;
  double mean() const;
};

std::span<const SizeDistribution> size_distributions();
const SizeDistribution* find_size_distribution(std::string_view name);

}  // namespace weir::fabric::sim
