// Routes: all shortest up-down paths, the effect of failures, and what static routes override.
#include "fabric/topology/routing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/topology/read_network.hpp"

namespace weir::fabric {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Network shipped(const std::string& name) {
  Complaints complaints;
  auto network = load_network(NETWORKS_DIR "/" + name + ".toml", complaints);
  EXPECT_TRUE(network) << complaints.text();
  return network ? std::move(*network) : Network{};
}

std::vector<std::string> next_nodes(const Network& network, const Routes& routes, const char* at,
                                    const char* host) {
  std::vector<std::string> out;
  for (const auto port : routes.next_ports(*network.find(at), *network.find(host)))
    out.push_back(network[network.neighbor(port)].name);
  return out;
}

LinkId link_between(const Network& network, const char* a, const char* b) {
  for (std::uint32_t l = 0; l < network.links.size(); ++l) {
    const auto& link = network.links[l];
    const auto one = network[network[link.a].node].name, other = network[network[link.b].node].name;
    if ((one == a && other == b) || (one == b && other == a)) return {l};
  }
  ADD_FAILURE() << "no link " << a << " - " << b;
  return {};
}

TEST(Routes, leaf_sends_over_every_spine_and_spine_straight_down) {
  const auto network = shipped("reference-rig");
  const Routes routes(network);
  EXPECT_EQ(routes.group_count(), 64u);
  EXPECT_THAT(next_nodes(network, routes, "leaf1", "leaf2-host1"), SizeIs(8));
  EXPECT_THAT(next_nodes(network, routes, "spine3", "leaf2-host1"), ElementsAre("leaf2"));
  EXPECT_THAT(next_nodes(network, routes, "leaf2", "leaf2-host7"), ElementsAre("leaf2-host7"));
  EXPECT_THAT(next_nodes(network, routes, "leaf1-host1", "leaf2-host1"), ElementsAre("leaf1"));
  EXPECT_THAT(next_nodes(network, routes, "leaf1-host1", "leaf1-host1"), IsEmpty());
}

TEST(Routes, failed_link_takes_its_spine_out_of_the_paths_to_that_leaf_only) {
  const auto network = shipped("reference-rig");
  const LinkId failed[] = {link_between(network, "leaf2", "spine3")};
  const Routes routes(network, failed);
  EXPECT_THAT(next_nodes(network, routes, "leaf1", "leaf2-host1"),
              ElementsAre("spine1", "spine2", "spine4", "spine5", "spine6", "spine7", "spine8"));
  EXPECT_THAT(next_nodes(network, routes, "leaf1", "leaf3-host1"), SizeIs(8));
  EXPECT_THAT(next_nodes(network, routes, "leaf2", "leaf1-host1"), SizeIs(7));
}

TEST(Routes, up_down_never_turns_up_again_and_shortest_does) {
  auto network = shipped("reference-rig");
  const LinkId failed[] = {link_between(network, "leaf2", "spine3")};
  EXPECT_THAT(next_nodes(network, Routes(network, failed), "spine3", "leaf2-host1"), IsEmpty());
  network.routing = RoutingRule::shortest;
  EXPECT_THAT(next_nodes(network, Routes(network, failed), "spine3", "leaf2-host1"), SizeIs(63));
}

TEST(Routes, fat_tree_stays_in_its_pod_when_it_can) {
  const auto network = shipped("fat-tree-320");
  const Routes routes(network);
  EXPECT_THAT(next_nodes(network, routes, "tor1-1", "tor1-2-host1"),
              ElementsAre("agg1-1", "agg1-2", "agg1-3", "agg1-4"));
  EXPECT_THAT(next_nodes(network, routes, "agg1-1", "tor1-2-host1"), ElementsAre("tor1-2"));
  EXPECT_THAT(next_nodes(network, routes, "agg1-2", "tor3-2-host1"),
              ElementsAre("core5", "core6", "core7", "core8"));
  EXPECT_THAT(next_nodes(network, routes, "core5", "tor3-2-host1"), ElementsAre("agg3-2"));
}

TEST(Routes, ring_takes_the_shorter_way_round) {
  const auto network = shipped("ring");
  const Routes routes(network);
  EXPECT_THAT(next_nodes(network, routes, "s1", "h3"), ElementsAre("s2"));
  EXPECT_THAT(next_nodes(network, routes, "s1", "h4"), ElementsAre("s5"));
  const LinkId failed[] = {link_between(network, "s1", "s2")};
  EXPECT_THAT(next_nodes(network, Routes(network, failed), "s1", "h2"), ElementsAre("s5"));
}

TEST(Routes, static_route_overrides_until_its_way_out_fails) {
  auto network = shipped("ring");
  const auto s1 = *network.find("s1"), h3 = *network.find("h3");
  const auto around = link_between(network, "s5", "s1");
  network.static_routes.push_back({s1, {h3}, {network[around].b}, {}});
  EXPECT_THAT(next_nodes(network, Routes(network), "s1", "h3"), ElementsAre("s5"));
  EXPECT_THAT(next_nodes(network, Routes(network), "s1", "h2"), ElementsAre("s2"));
  const LinkId failed[] = {around};
  EXPECT_THAT(next_nodes(network, Routes(network, failed), "s1", "h3"), ElementsAre("s2"));
}

TEST(Routes, host_with_two_links_uses_and_is_reached_over_both) {
  auto network = shipped("ring");
  const auto dual = network.add_node({"dual", NodeKind::host, 0, 0, {}, {}});
  for (const auto* leaf : {"s1", "s2"})
    network.add_link(dual, "", *network.find(leaf), "", 100'000'000'000, {}, {});
  const Routes routes(network);
  EXPECT_THAT(next_nodes(network, routes, "s3", "dual"), ElementsAre("s2"));
  EXPECT_THAT(next_nodes(network, routes, "s4", "dual"), ElementsAre("s3", "s5"));
  EXPECT_THAT(next_nodes(network, routes, "s1", "dual"), ElementsAre("dual"));
  EXPECT_THAT(next_nodes(network, routes, "dual", "h2"), ElementsAre("s2"));
  EXPECT_THAT(next_nodes(network, routes, "dual", "h4"), ElementsAre("s1", "s2"));
}

}  // namespace
}  // namespace weir::fabric
