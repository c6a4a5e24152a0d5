#include "fabric/sim/traffic/size_distribution.hpp"

#include <algorithm>

namespace weir::fabric::sim {
namespace {

// DCTCP, SIGCOMM 2010, in the form of HPCC's evaluation.
constexpr SizePoint websearch[] = {{0, 0},      {10e3, 0.15}, {20e3, 0.2},  {30e3, 0.3},
                                   {50e3, 0.4}, {80e3, 0.53}, {200e3, 0.6}, {1e6, 0.7},
                                   {2e6, 0.8},  {5e6, 0.9},   {10e6, 0.97}, {30e6, 1}};
// "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015, Hadoop, in the same form.
constexpr SizePoint hadoop[] = {{0, 0},       {100, 0.01},   {200, 0.02},  {300, 0.05},  {350, 0.15},
                                {400, 0.2},   {500, 0.3},    {600, 0.4},   {700, 0.5},   {1e3, 0.6},
                                {2e3, 0.67},  {7e3, 0.7},    {30e3, 0.72}, {50e3, 0.82}, {80e3, 0.87},
                                {120e3, 0.9}, {300e3, 0.95}, {1e6, 0.975}, {2e6, 0.99},  {10e6, 1}};
constexpr SizeDistribution all[] = {
    {"websearch", "a search engine's queries and updates: mean 1.7 MB", websearch},
    {"hadoop", "Hadoop in a social network's data centre: mean 120 kB, most below 1 kB", hadoop},
};

}  // namespace

std::uint64_t SizeDistribution::sample(Random& random) const {
  const double part = random.unit();
  auto above =
      std::find_if(points.begin() + 1, points.end() - 1, [&](const SizePoint& p) { return p.part > part; });
  const SizePoint& high = *above;
  const SizePoint& low = *(above - 1);
  const double bytes = low.bytes + (high.bytes - low.bytes) * (part - low.part) / (high.part - low.part);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bytes));
}

double SizeDistribution::mean() const {
  double sum = 0;
  for (std::size_t i = 1; i < points.size(); ++i)
    sum += (points[i].part - points[i - 1].part) * (points[i].bytes + points[i - 1].bytes) / 2;
  return sum;
}

std::span<const SizeDistribution> size_distributions() { return all; }

const SizeDistribution* find_size_distribution(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(all), std::end(all), [&](const auto& d) { return d.name == name; });
  return found == std::end(all) ? nullptr : found;
}

}  // namespace weir::fabric::sim
