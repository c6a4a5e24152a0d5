// Regular networks from a few numbers: [leaf_spine] and [fat_tree] in a network file.
#pragma once

#include "fabric/topology/network.hpp"

namespace weir::fabric {

// The links of one level of a generated network.
struct LevelLinks {
  std::uint64_t speed_bps;
  Cable cable;
};

struct LeafSpine {
  std::uint32_t spines, leaves, hosts_per_leaf;
  std::uint32_t links_per_pair;  // between a leaf and a spine
  LevelLinks to_host, to_spine;
  std::uint32_t leaf_model, spine_model;  // indices into Network::models
  Place place;
};

// Three tiers. Each pod has ToRs and aggregation switches, fully connected. Aggregation switch i of each pod
// connects to the cores [i * cores / aggs_per_pod, (i + 1) * cores / aggs_per_pod). With k: k pods of k/2 and
// k/2 switches, k*k/4 cores, and k/2 hosts per ToR.
struct FatTree {
  std::uint32_t pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor;
  LevelLinks to_host, to_agg, to_core;
  std::uint32_t tor_model, agg_model, core_model;
  Place place;
};

std::uint64_t node_count(const LeafSpine& shape);
std::uint64_t node_count(const FatTree& shape);
void generate(const LeafSpine& shape, Network& network);
void generate(const FatTree& shape, Network& network);

}  // namespace weir::fabric
