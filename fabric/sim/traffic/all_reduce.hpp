// The algorithms of an all-reduce, as flows and their order: ring, direct, halving and doubling, double
// binary tree (Thakur et al. 2005; Sanders et al. 2009, as in NCCL). Pure.
#pragma once

#include <span>

#include "fabric/sim/traffic/flow_writer.hpp"

namespace weir::fabric::sim {

enum class AllReduceBy : std::uint8_t { ring, direct, halving_doubling, tree };

struct AllReduce {
  AllReduceBy algorithm = AllReduceBy::ring;
  std::uint32_t chunks = 16;  // by tree: pieces of each half of the vector
};

// Among `hosts`, in order, of a vector of `bytes` on each.
void all_reduce(FlowWriter& flows, const AllReduce& how, std::span<const std::uint32_t> hosts,
                std::uint64_t bytes, Ticks start);
// How many flows that makes.
double flows_of(const AllReduce& how, std::size_t hosts);
// Halving and doubling pairs hosts by the bits of their places.
bool is_power_of_two(std::size_t hosts);
const char* name_of(AllReduceBy algorithm);

}  // namespace weir::fabric::sim
