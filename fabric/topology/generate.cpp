#include "fabric/topology/generate.hpp"

#include <fmt/format.h>

namespace weir::fabric {
namespace {

NodeId add_switch(Network& network, std::string name, std::uint32_t tier, std::uint32_t model,
                  const Place& place) {
  return network.add_node({std::move(name), NodeKind::switch_, tier, model, {}, place});
}

void add_hosts(Network& network, NodeId leaf, std::uint32_t count, const LevelLinks& links,
               const Place& place) {
  for (std::uint32_t h = 0; h < count; ++h) {
    const auto host = network.add_node(
        {fmt::format("{}-host{}", network[leaf].name, h + 1), NodeKind::host, 0, 0, {}, place});
    network.add_link(host, "", leaf, "", links.speed_bps, links.cable, place);
  }
}

}  // namespace

std::uint64_t node_count(const LeafSpine& shape) {
  return shape.spines + std::uint64_t{shape.leaves} * (1 + shape.hosts_per_leaf);
}

std::uint64_t node_count(const FatTree& shape) {
  return shape.cores + std::uint64_t{shape.pods} * (shape.aggs_per_pod + std::uint64_t{shape.tors_per_pod} *
                                                                             (1 + shape.hosts_per_tor));
}

void generate(const LeafSpine& shape, Network& network) {
  std::vector<NodeId> spines;
  for (std::uint32_t s = 0; s < shape.spines; ++s)
    spines.push_back(add_switch(network, fmt::format("spine{}", s + 1), 2, shape.spine_model, shape.place));
  for (std::uint32_t l = 0; l < shape.leaves; ++l) {
    const auto leaf = add_switch(network, fmt::format("leaf{}", l + 1), 1, shape.leaf_model, shape.place);
    add_hosts(network, leaf, shape.hosts_per_leaf, shape.to_host, shape.place);
    for (const auto spine : spines)
      for (std::uint32_t i = 0; i < shape.links_per_pair; ++i)
        network.add_link(leaf, "", spine, "", shape.to_spine.speed_bps, shape.to_spine.cable, shape.place);
  }
}

void generate(const FatTree& shape, Network& network) {
  std::vector<NodeId> cores;
  for (std::uint32_t c = 0; c < shape.cores; ++c)
    cores.push_back(add_switch(network, fmt::format("core{}", c + 1), 3, shape.core_model, shape.place));
  const auto cores_per_agg = shape.cores / shape.aggs_per_pod;
  for (std::uint32_t p = 0; p < shape.pods; ++p) {
    std::vector<NodeId> aggs;
    for (std::uint32_t a = 0; a < shape.aggs_per_pod; ++a)
      aggs.push_back(
          add_switch(network, fmt::format("agg{}-{}", p + 1, a + 1), 2, shape.agg_model, shape.place));
    for (std::uint32_t t = 0; t < shape.tors_per_pod; ++t) {
      const auto tor =
          add_switch(network, fmt::format("tor{}-{}", p + 1, t + 1), 1, shape.tor_model, shape.place);
      add_hosts(network, tor, shape.hosts_per_tor, shape.to_host, shape.place);
      for (const auto agg : aggs)
        network.add_link(tor, "", agg, "", shape.to_agg.speed_bps, shape.to_agg.cable, shape.place);
    }
    for (std::uint32_t a = 0; a < shape.aggs_per_pod; ++a)
      for (std::uint32_t c = 0; c < cores_per_agg; ++c)
        network.add_link(aggs[a], "", cores[a * cores_per_agg + c], "", shape.to_core.speed_bps,
                         shape.to_core.cable, shape.place);
  }
}

}  // namespace weir::fabric
