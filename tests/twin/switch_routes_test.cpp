// Where the switches of a network send packets, and how cables that are pulled change it.
#include "twin/hosts/switch_routes.hpp"

#include <gtest/gtest.h>

namespace weir::hosts {
namespace {

using Cables = std::vector<std::size_t>;

// Four hosts on two leaves, joined by two spines: cables 0 to 3 are the hosts', 4 to 7 go leaf by leaf.
NetworkPlan leaf_spine() {
  NetworkPlan plan{.hosts = hosts_by_order({"h1", "h2", "h3", "h4"})};
  plan.switches = {"leaf1", "leaf2", "spine1", "spine2"};
  plan.cables = {{0, 4}, {1, 4}, {2, 5}, {3, 5}, {4, 6}, {4, 7}, {5, 6}, {5, 7}};
  return plan;
}
enum : std::size_t { leaf1, leaf2, spine1, spine2 };
enum : std::size_t { h1, h2, h3, h4 };

TEST(SwitchRoutes, share_all_shortest_ways) {
  const NetworkPlan plan = leaf_spine();
  ASSERT_TRUE(check(plan));
  const SwitchRoutes routes = shortest_routes(plan, std::vector<bool>(8, true));
  EXPECT_EQ(routes[leaf1][h1], Cables{0});
  EXPECT_EQ(routes[leaf1][h3], (Cables{4, 5}));
  EXPECT_EQ(routes[spine1][h3], Cables{6});
  EXPECT_EQ(routes[leaf2][h2], (Cables{6, 7}));
}

TEST(SwitchRoutes, avoid_pulled_cables_everywhere) {
  std::vector<bool> plugged(8, true);
  plugged[6] = false;  // leaf2 to spine1
  const SwitchRoutes routes = shortest_routes(leaf_spine(), plugged);
  EXPECT_EQ(routes[leaf1][h3], Cables{5});
  EXPECT_EQ(routes[leaf2][h1], Cables{7});
  EXPECT_EQ(routes[spine1][h3], Cables{4});  // back down and over the other spine
}

TEST(SwitchRoutes, end_where_a_host_or_a_leaf_is_cut_off) {
  std::vector<bool> plugged(8, true);
  plugged[h4] = plugged[4] = plugged[5] = false;
  const SwitchRoutes routes = shortest_routes(leaf_spine(), plugged);
  EXPECT_EQ(routes[leaf1][h3], Cables{});
  EXPECT_EQ(routes[leaf2][h1], Cables{});
  EXPECT_EQ(routes[leaf2][h3], Cables{2});
  for (const std::size_t at : {leaf1, leaf2, spine1, spine2}) EXPECT_EQ(routes[at][h4], Cables{});
}

TEST(SwitchRoutes, plans_with_wrong_cables_are_refused) {
  const struct {
    const char* what;
    void (*change)(NetworkPlan&);
  } rows[] = {
      {"a host without a cable", [](NetworkPlan& plan) { plan.cables.resize(3); }},
      {"another host's cable", [](NetworkPlan& plan) { plan.cables[1].a = 2; }},
      {"hosts joined", [](NetworkPlan& plan) { plan.cables[0].b = 1; }},
      {"no such switch", [](NetworkPlan& plan) { plan.cables[7].b = 8; }},
      {"a switch joined to itself", [](NetworkPlan& plan) { plan.cables[7] = {5, 5}; }},
      {"a host between switches", [](NetworkPlan& plan) { plan.cables[7].a = 1; }},
      {"a switch called like a host", [](NetworkPlan& plan) { plan.switches[0] = "h1"; }},
      {"no name", [](NetworkPlan& plan) { plan.switches[0] = ""; }},
      {"too many", [](NetworkPlan& plan) { plan.switches.resize(NetworkPlan::max_switches + 1, "s"); }}};
  for (const auto& [what, change] : rows) {
    NetworkPlan plan = leaf_spine();
    change(plan);
    EXPECT_FALSE(check(plan)) << what;
  }
}

TEST(SwitchRoutes, topology_names_nodes_and_states) {
  std::vector<bool> plugged(8, true);
  plugged[7] = false;
  const std::string text = topology_file(leaf_spine(), plugged);
  for (const char* line :
       {"switch spine2\n", "host h1 10.77.0.1\n", "cable h1 leaf1 up\n", "cable leaf2 spine2 down\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
  EXPECT_EQ(topology_file({.hosts = hosts_by_order({"h1"})}, {true}),
            "switch switch\nhost h1 10.77.0.1\ncable h1 switch up\n");
}

}  // namespace
}  // namespace weir::hosts
