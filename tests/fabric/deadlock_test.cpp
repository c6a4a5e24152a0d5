// Cyclic buffer dependencies: every existing one is found and named, and no other is reported.
#include "fabric/plan/deadlock.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/topology/read_network.hpp"

namespace weir::fabric {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Network shipped(const std::string& name) {
  Complaints complaints;
  auto network = load_network(NETWORKS_DIR "/" + name + ".toml", complaints);
  EXPECT_TRUE(network) << complaints.text();
  return network ? std::move(*network) : Network{};
}

// A ring of n switches with one host each, and any further links between switches a and b.
Network ring(std::uint32_t n, std::vector<std::pair<std::uint32_t, std::uint32_t>> chords = {}) {
  Network network;
  network.models = built_in_models();
  for (std::uint32_t i = 0; i < n; ++i)
    network.add_node({fmt::format("s{}", i), NodeKind::switch_, 0, 0, {}, {}});
  const auto join = [&](std::uint32_t a, std::uint32_t b) {
    network.add_link({a}, "", {b}, "", 100'000'000'000, {}, {});
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    network.add_node({fmt::format("h{}", i), NodeKind::host, 0, 0, {}, {}});
    join(n + i, i);
    join(i, (i + 1) % n);
  }
  for (const auto& [a, b] : chords) join(a, b);
  return network;
}

// The definition: consecutive hops of a cycle must be links on the path of some packet, each leading to the
// next.
void expect_real(const Network& network, const Routes& routes, const DependencyCycle& cycle) {
  ASSERT_GE(cycle.hops.size(), 2u);
  for (std::size_t i = 0; i < cycle.hops.size(); ++i) {
    const auto& hop = cycle.hops[i];
    const auto& next = cycle.hops[(i + 1) % cycle.hops.size()];
    EXPECT_EQ(network.neighbor(hop.out), network[next.out].node);
    const auto uses = [&](PortId port) {
      const auto ports = routes.next_ports(network[port].node, hop.held_by);
      return std::ranges::find(ports, port) != ports.end();
    };
    EXPECT_TRUE(uses(hop.out));
    EXPECT_TRUE(uses(next.out));
  }
}

TEST(Deadlock, ring_of_five_has_a_cycle_each_way_round) {
  const auto network = shipped("ring");
  const auto report = find_deadlocks(network, FailureScope::each_link);
  ASSERT_THAT(report.cycles, SizeIs(2));
  const Routes routes(network);
  for (const auto& cycle : report.cycles) {
    EXPECT_THAT(cycle.hops, SizeIs(5));
    expect_real(network, routes, cycle);
  }
  EXPECT_THAT(report.cycles[0].text + report.cycles[1].text, HasSubstr("s1 -> s2 -> s3 -> s4 -> s5 -> s1"));
}

TEST(Deadlock, triangle_has_none_because_every_path_is_one_hop) {
  EXPECT_THAT(find_deadlocks(ring(3), FailureScope::none).cycles, IsEmpty());
}

TEST(Deadlock, triangle_without_a_link_is_a_line_and_has_none) {
  const auto report = find_deadlocks(ring(3), FailureScope::each_link);
  EXPECT_EQ(report.failures_examined, 3u);
  EXPECT_EQ(report.failures_with_cycle, 0u);
}

TEST(Deadlock, full_mesh_gets_a_cycle_only_once_a_link_fails_in_some_meshes) {
  // Four switches in a ring with both diagonals: every path is one hop. After one link fails one pair goes
  // over two others, which is two dependencies but no cycle.
  const auto network = ring(4, {{0, 2}, {1, 3}});
  const auto report = find_deadlocks(network, FailureScope::each_link);
  EXPECT_THAT(report.cycles, IsEmpty());
  EXPECT_EQ(report.failures_examined, 6u);
  EXPECT_EQ(report.failures_with_cycle, 0u);
}

TEST(Deadlock, cycle_that_only_a_failure_makes_is_named_with_the_link) {
  // Rings of six with the chords that keep paths short enough: cutting a chord sends traffic around the ring.
  auto network = ring(5, {{0, 2}, {1, 3}, {2, 4}, {3, 0}, {4, 1}});
  ASSERT_THAT(find_deadlocks(network, FailureScope::each_link).cycles, IsEmpty());
  // One way around by static routes, where no chord is needed: four of the five dependencies of a cycle.
  const auto port_to = [&](std::uint32_t from, std::uint32_t to) {
    for (const auto port : network.nodes[from].ports)
      if (network.neighbor(port) == NodeId{to}) return port;
    ADD_FAILURE();
    return PortId{};
  };
  const auto host = [&](std::uint32_t i) { return *network.find(fmt::format("h{}", i)); };
  for (std::uint32_t i = 0; i < 4; ++i)
    network.static_routes.push_back({{i}, {host((i + 2) % 5)}, {port_to(i, (i + 1) % 5)}, {}});
  EXPECT_THAT(find_deadlocks(network, FailureScope::none).cycles, IsEmpty());
  // The last one, from s4 to h1, uses the chord s4 - s1 until that fails; then it goes over s0 (among
  // others).
  const auto report = find_deadlocks(network, FailureScope::each_link);
  EXPECT_THAT(report.cycles, IsEmpty());
  ASSERT_GE(report.failures_with_cycle, 1u);
  const auto chord = network[port_to(4, 1)].link;
  const auto found = std::ranges::find(report.after_failure, chord, &FailureCycle::failed);
  ASSERT_NE(found, report.after_failure.end());
  const LinkId failed[] = {chord};
  expect_real(network, Routes(network, failed), found->cycle);
}

// Where packets for `to` arrive, from any host.
std::vector<bool> reached(const Network& network, const Routes& routes, NodeId to) {
  std::vector<bool> out(network.nodes.size());
  std::vector<NodeId> queue;
  const auto reach = [&](NodeId node) {
    if (!out[node.index]) queue.push_back(node);
    out[node.index] = true;
  };
  for (std::uint32_t n = 0; n < network.nodes.size(); ++n)
    if (network.nodes[n].kind == NodeKind::host) reach({n});
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const auto port : routes.next_ports(queue[i], to)) reach(network.neighbor(port));
  return out;
}

Network generated(const std::string& text) {
  Complaints complaints;
  auto network = read_network(text, "net.toml", [](const std::string&) { return std::nullopt; }, complaints);
  EXPECT_TRUE(network) << complaints.text();
  return network ? std::move(*network) : Network{};
}

// Switches without hosts, which lose their only path and are not needed for any.
TEST(Deadlock, incremental_failures_agree_with_routing_anew_where_packets_come) {
  const std::string tail = "host_speed = \"100G\"\nhost_cable = \"3m\"\n[routing]\nrule = \"shortest\"\n";
  const std::string speeds =
      "agg_speed = \"100G\"\nagg_cable = \"9m\"\ncore_speed = \"100G\"\ncore_cable = \"9m\"\ntor_model = "
      "\"generic-32m\"\nagg_model = \"generic-32m\"\ncore_model = \"generic-32m\"\n";
  for (const auto& network :
       {generated("[fat_tree]\nk = 4\n" + speeds + tail),
        generated("[fat_tree]\npods = 3\ntors_per_pod = 2\naggs_per_pod = 1\ncores = 2\nhosts_per_tor = 1\n" +
                  speeds + tail),
        generated(
            "[leaf_spine]\nspines = 1\nleaves = 3\nhosts_per_leaf = 2\nspine_speed = \"100G\"\nspine_cable = "
            "\"9m\"\nleaf_model = \"generic-32m\"\nspine_model = \"generic-32m\"\n" +
            tail)}) {
    Routes routes(network);
    for (std::uint32_t l = 0; l < network.links.size(); ++l) {
      const auto a = network[network.links[l].a].node, b = network[network.links[l].b].node;
      if (network[a].kind == NodeKind::host || network[b].kind == NodeKind::host) continue;
      const auto change = routes.fail({l});
      const LinkId failed[] = {{l}};
      const Routes anew(network, failed);
      for (std::uint32_t to = 0; to < network.nodes.size(); ++to) {
        if (network.nodes[to].kind != NodeKind::host) continue;
        const auto there = reached(network, anew, {to});
        EXPECT_EQ(there, reached(network, routes, {to}));
        for (std::uint32_t at = 0; at < network.nodes.size(); ++at)
          if (there[at]) {
            EXPECT_TRUE(std::ranges::equal(routes.next_ports({at}, {to}), anew.next_ports({at}, {to})))
                << network.nodes[at].name << " to " << network.nodes[to].name << " without link " << l;
          }
      }
      routes.undo(change);
    }
  }
}

// Examining a failure only where it matters must give the same result as examining everything.
TEST(Deadlock, incremental_failures_agree_with_routing_anew) {
  std::vector<Network> networks{ring(6, {{0, 3}}), ring(7, {{0, 3}, {2, 5}, {1, 4}}),
                                ring(8, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}),
                                ring(5, {{0, 2}, {1, 3}, {2, 4}, {3, 0}, {4, 1}})};
  for (const auto& network : networks) {
    Routes routes(network);
    for (std::uint32_t l = 0; l < network.links.size(); ++l) {
      const auto a = network[network.links[l].a].node, b = network[network.links[l].b].node;
      if (network[a].kind == NodeKind::host || network[b].kind == NodeKind::host) continue;
      const auto change = routes.fail({l});
      const LinkId failed[] = {{l}};
      const Routes anew(network, failed);
      const auto same_as = [&](const Routes& other) {
        for (std::uint32_t at = 0; at < network.nodes.size(); ++at)
          for (std::uint32_t to = 0; to < network.nodes.size(); ++to)
            if (network.nodes[to].kind == NodeKind::host) {
              EXPECT_TRUE(std::ranges::equal(routes.next_ports({at}, {to}), other.next_ports({at}, {to})));
            }
      };
      same_as(anew);
      routes.undo(change);
      same_as(Routes(network));
    }
  }
}

TEST(Deadlock, clos_has_none_with_any_link_failed) {
  for (const auto* name : {"reference-rig", "fat-tree-320"})
    for (const auto rule : {RoutingRule::up_down, RoutingRule::shortest}) {
      auto network = shipped(name);
      network.routing = rule;
      const auto report = find_deadlocks(network, FailureScope::each_link);
      EXPECT_THAT(report.cycles, IsEmpty()) << name;
      EXPECT_EQ(report.failures_examined, std::string(name) == "fat-tree-320" ? 160u : 512u);
      EXPECT_EQ(report.failures_with_cycle, 0u) << name;
    }
}

// A valley in the routes, made by hand, causes the cycle that up-down routing cannot have.
TEST(Deadlock, static_routes_that_turn_up_again_close_a_circle_in_a_clos) {
  auto network = shipped("fat-tree-320");
  const auto node = [&](const char* name) { return *network.find(name); };
  const auto port_to = [&](const char* from, const char* to) {
    for (const auto port : network[node(from)].ports)
      if (network.neighbor(port) == node(to)) return port;
    ADD_FAILURE() << from << to;
    return PortId{};
  };
  const auto go = [&](const char* at, const char* host, const char* via) {
    network.static_routes.push_back({node(at), {node(host)}, {port_to(at, via)}, {}});
  };
  // To a host of tor1-3: up to agg1-1, down to tor1-2, up to agg1-2; and back the same way to one of tor1-4.
  go("tor1-1", "tor1-3-host1", "agg1-1");
  go("agg1-1", "tor1-3-host1", "tor1-2");
  go("tor1-2", "tor1-3-host1", "agg1-2");
  go("tor1-2", "tor1-4-host1", "agg1-2");
  go("agg1-2", "tor1-4-host1", "tor1-1");
  go("tor1-1", "tor1-4-host1", "agg1-1");
  const auto report = find_deadlocks(network, FailureScope::each_link);
  ASSERT_THAT(report.cycles, SizeIs(1));
  EXPECT_THAT(report.cycles[0].hops, SizeIs(4));
  expect_real(network, Routes(network), report.cycles[0]);
}

// Two leaves and two spines; each leaf is the standby for a host of both.
std::string dual_tor(std::string_view detours) {
  std::string text;
  for (const auto* name : {"tor-a", "tor-b", "t1-1", "t1-2"})
    text += fmt::format("[[switch]]\nname = \"{}\"\nmodel = \"generic-32m\"\ntier = {}\n", name,
                        name[1] == 'o' ? 1 : 2);
  const auto link = [&text](std::string_view a, std::string_view b) {
    text += fmt::format("[[link]]\nbetween = [\"{}\", \"{}\"]\nspeed = \"100G\"\ncable = \"5m\"\n", a, b);
  };
  for (const auto* host : {"h0", "h1", "h2"}) {
    text += fmt::format("[[host]]\nname = \"{}\"\n", host);
    link(host, "tor-a");
    link(host, "tor-b");
  }
  for (const auto* tor : {"tor-a", "tor-b"})
    for (const auto* spine : {"t1-1", "t1-2"}) link(tor, spine);
  // A host behind the spines, so that packets come down.
  text += "[[switch]]\nname = \"tor-c\"\nmodel = \"generic-32m\"\ntier = 1\n[[host]]\nname = \"far\"\n";
  link("far", "tor-c");
  link("tor-c", "t1-1");
  link("tor-c", "t1-2");
  return text + std::string(detours);
}

TEST(Deadlock, detours_between_two_leaves_close_a_circle_through_the_spines) {
  constexpr const char* a_for_h0 = "[[detour]]\nat = \"tor-a\"\nto = \"h0\"\nthrough = \"tor-b\"\n";
  constexpr const char* b_for_h1 = "[[detour]]\nat = \"tor-b\"\nto = \"h1\"\nthrough = \"tor-a\"\n";
  struct Row {
    std::string detours;
    bool circle;
  };
  for (const auto& row :
       {Row{"", false}, Row{a_for_h0, false}, Row{std::string(a_for_h0) + b_for_h1, true},
        // The cycle needs both detours; separate buffers for one of them break it.
        Row{std::string(a_for_h0) + b_for_h1 + "remapped = true\n", false},
        Row{std::string(a_for_h0) + "remapped = true\n" + b_for_h1 + "remapped = true\n", false}}) {
    Complaints complaints;
    const auto network = read_network(
        dual_tor(row.detours), "net.toml", [](const std::string&) { return std::nullopt; }, complaints);
    ASSERT_TRUE(network) << complaints.text();
    const auto report = find_deadlocks(*network, FailureScope::each_link);
    EXPECT_EQ(!report.cycles.empty(), row.circle) << row.detours;
    if (!row.circle) continue;
    EXPECT_THAT(report.cycles.front().text, HasSubstr("tor-a"));
    EXPECT_THAT(report.cycles.front().text, HasSubstr("tor-b"));
    EXPECT_THAT(report.cycles.front().text, HasSubstr("t1-"));
  }
}

TEST(Deadlock, a_detour_names_two_switches_and_hosts) {
  for (const auto& [detour, what] :
       {std::pair{"at = \"h0\"\nto = \"h1\"\nthrough = \"tor-b\"", "'h0' is a host"},
        std::pair{"at = \"tor-a\"\nto = \"h1\"\nthrough = \"tor-a\"", "stays where it is"},
        std::pair{"at = \"tor-a\"\nthrough = \"tor-b\"", "name hosts"}}) {
    Complaints complaints;
    EXPECT_FALSE(read_network(
        dual_tor(std::string("[[detour]]\n") + detour + "\n"), "net.toml",
        [](const std::string&) { return std::nullopt; }, complaints));
    EXPECT_THAT(complaints.text(), HasSubstr(what));
  }
}

}  // namespace
}  // namespace weir::fabric
