// Network files: what is read, and the message for each mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/topology/read_network.hpp"

namespace weir::fabric {
namespace {

using testing::HasSubstr;

std::optional<std::string> no_files(const std::string&) { return std::nullopt; }

std::string complaints_of(std::string_view text, const ReadLimits& limits = {}) {
  Complaints complaints;
  const auto network = read_network(text, "net.toml", no_files, complaints, limits);
  EXPECT_EQ(network.has_value(), complaints.none());
  return complaints.text();
}

// Each level is a recursive call of the parser, so a stack overflows soon.
TEST(NetworkFile, keys_and_brackets_that_nest_too_deeply_are_refused_before_they_are_parsed) {
  std::string key = "a";
  for (int i = 0; i < 40'000; ++i) key += ".a";
  std::string brackets;
  for (int i = 0; i < 40'000; ++i) brackets += "{a=";
  std::string mixed = "[x.x.x.x.x.x.x.x.x.x]\n";
  for (int i = 0; i < 10; ++i) mixed += "a.a.a.a.a.a.a.a={";
  for (const std::string& text : {key + " = 1", "[" + key + "]", "[[" + key + "]]", "b = " + brackets, mixed})
    EXPECT_THAT(complaints_of(text), HasSubstr("more than 64 levels")) << text.substr(0, 80);
  const std::string dots(1000, '.');
  for (const std::string& text : {"# " + dots, "name = \"" + dots + "\"", "name = '" + dots + "'",
                                  "name = \"\"\"\n" + dots + "\n\"\"\""})
    EXPECT_THAT(complaints_of(text), testing::Not(HasSubstr("levels"))) << text.substr(0, 80);
}

// Two hosts at one switch; tests append mistakes.
constexpr std::string_view small = R"(name = "small"
[[switch]]
name = "s1"
model = "generic-32m"
[[host]]
name = "h1"
[[host]]
name = "h2"
[[link]]
between = ["h1", "s1"]
speed = "100G"
cable = "5m"
[[link]]
between = ["h2", "s1:Ethernet8"]
speed = "25G"
cable = "3m"
kind = "copper"
return_cable = "4m"
)";

TEST(NetworkFile, reads_nodes_ports_and_cables) {
  Complaints complaints;
  const auto network = read_network(small, "net.toml", no_files, complaints);
  ASSERT_TRUE(network) << complaints.text();
  EXPECT_EQ(network->name, "small");
  ASSERT_EQ(network->nodes.size(), 3u);
  const auto s1 = network->find("s1");
  ASSERT_TRUE(s1);
  ASSERT_EQ((*network)[*s1].ports.size(), 2u);
  const auto first = (*network)[*s1].ports[0], second = (*network)[*s1].ports[1];
  EXPECT_EQ((*network)[first].name, "Ethernet0");
  EXPECT_EQ((*network)[second].name, "Ethernet8");
  EXPECT_EQ(network->speed_bps(first), 100'000'000'000u);
  EXPECT_EQ((*network)[network->neighbor(second)].name, "h2");
  EXPECT_DOUBLE_EQ(network->outbound_delay_ns(second), 20);
  EXPECT_DOUBLE_EQ(network->outbound_delay_ns((*network)[second].peer), 15);
  EXPECT_EQ(network->model_of((*network)[*s1]).buffer_bytes, 32u << 20);
  EXPECT_EQ(network->classes.dscp_to_priority[26], 1);
  EXPECT_EQ(network->classes.dscp_to_priority[3], 3);
}

TEST(NetworkFile, ports_are_numbered_as_the_switch_numbers_them) {
  Complaints complaints;
  const auto network = load_network(NETWORKS_DIR "/reference-rig.toml", complaints);
  ASSERT_TRUE(network) << complaints.text();
  const auto& leaf = (*network)[*network->find("leaf1")];
  ASSERT_EQ(leaf.ports.size(), 56u);
  EXPECT_EQ((*network)[leaf.ports[47]].name, "Ethernet188");
  EXPECT_EQ((*network)[leaf.ports[48]].name, "Ethernet192");
  EXPECT_EQ((*network)[leaf.ports[49]].name, "Ethernet196");
  const auto& spine = (*network)[*network->find("spine8")];
  ASSERT_EQ(spine.ports.size(), 64u);
  EXPECT_EQ((*network)[spine.ports[63]].name, "Ethernet252");
}

TEST(NetworkFile, ports_without_a_name_are_numbered_behind_all_that_have_one) {
  std::string text = "[[switch]]\nname = \"s\"\nmodel = \"generic-32m\"\n";
  for (const auto* end : {"s:Ethernet8", "s:Ethernet0", "s", "s:swp1", "s"}) {
    const auto host = "h" + std::to_string(text.size());
    text += "[[host]]\nname = \"" + host + "\"\n[[link]]\nbetween = [\"" + end + "\", \"" + host +
            "\"]\nspeed = \"100G\"\ncable = \"1m\"\n";
  }
  Complaints complaints;
  const auto network = read_network(text, "net.toml", no_files, complaints);
  ASSERT_TRUE(network) << complaints.text();
  std::vector<std::string> names;
  for (const auto port : (*network)[*network->find("s")].ports) names.push_back((*network)[port].name);
  EXPECT_THAT(names, testing::ElementsAre("Ethernet8", "Ethernet0", "Ethernet12", "swp1", "Ethernet16"));
}

TEST(NetworkFile, shipped_networks_read_without_complaint) {
  struct Row {
    const char* file;
    std::size_t nodes, links;
  };
  for (const auto& row : {Row{"reference-rig", 8 + 64 + 3072, 3072 + 512},
                          Row{"fat-tree-320", 56 + 320, 320 + 80 + 80}, Row{"ring", 10, 10}}) {
    Complaints complaints;
    const auto network = load_network(std::string(NETWORKS_DIR "/") + row.file + ".toml", complaints);
    ASSERT_TRUE(network) << complaints.text();
    EXPECT_EQ(network->nodes.size(), row.nodes) << row.file;
    EXPECT_EQ(network->links.size(), row.links) << row.file;
  }
}

TEST(NetworkFile, fat_tree_of_k_has_the_textbook_size) {
  Complaints complaints;
  const auto network = read_network(R"([fat_tree]
k = 8
host_speed = "100G"
host_cable = "5m"
agg_speed = "100G"
agg_cable = "5m"
core_speed = "100G"
core_cable = "5m"
tor_model = "generic-32m"
agg_model = "generic-32m"
core_model = "generic-32m"
)",
                                    "net.toml", no_files, complaints);
  ASSERT_TRUE(network) << complaints.text();
  EXPECT_EQ(network->nodes.size(), 128u + 80u);
  for (const auto& node : network->nodes) {
    EXPECT_EQ(node.ports.size(), node.kind == NodeKind::switch_ ? 8u : 1u) << node.name;
  }
}

TEST(NetworkFile, built_in_models_read_without_complaint) {
  EXPECT_EQ(built_in_models().size(), 25u);
  for (const auto& model : built_in_models()) {
    EXPECT_FALSE(model.source.empty()) << model.name;
    EXPECT_GT(model.buffer_bytes, model.reserved_bytes) << model.name;
  }
}

TEST(NetworkFile, users_models_come_inline_or_from_a_file_and_may_correct_built_in_ones) {
  const std::string text = "models = [\"mine.toml\"]\n" + std::string(small) +
                           "[[switch_model]]\nname = \"generic-32m\"\nbuffer = \"8MiB\"\ncell = 256\n";
  Complaints complaints;
  const auto network = read_network(
      text, "net.toml",
      [](const std::string& name) -> std::optional<std::string> {
        EXPECT_EQ(name, "mine.toml");
        return "[[switch_model]]\nname = \"mine\"\nbuffer = \"2MB\"\ncell = 100\n";
      },
      complaints);
  ASSERT_TRUE(network) << complaints.text();
  EXPECT_EQ(network->models.back().name, "mine");
  EXPECT_EQ(network->models.back().buffer_bytes, 2'000'000u);
  EXPECT_EQ(network->model_of((*network)[*network->find("s1")]).buffer_bytes, 8u << 20);
}

struct Mistake {
  const char* name;
  std::string text;
  const char* complaint;
};

class NetworkMistake : public testing::TestWithParam<Mistake> {};

TEST_P(NetworkMistake, is_named_with_place_and_fix) {
  EXPECT_THAT(complaints_of(GetParam().text), HasSubstr(GetParam().complaint));
}

std::string with(std::string_view more) { return std::string(small) + std::string(more); }
std::string replaced(std::string_view what, std::string_view by) {
  std::string text(small);
  text.replace(text.find(what), what.size(), by);
  return text;
}

const Mistake mistakes[] = {
    {"not_toml", "name = \n", "net.toml:1:8: not TOML:"},
    {"empty", "", "net.toml:1:1: a network without a switch; describe one"},
    {"unknown_key", with("[traffic]\nincats = 3\n"),
     "net.toml:20:1: unknown key 'incats' in [traffic]; did you mean 'incast'?"},
    {"unknown_table", with("[foo]\n"), "net.toml:19:2: unknown key 'foo' in the file; known here:"},
    {"scenario", with("[[workload]]\nkind = \"incast\"\n"),
     "net.toml:19:1: this is a scenario: what happens in a network, not the network itself; run it with"},
    {"negative_length", replaced("\"5m\"", "\"-5m\""), "net.toml:12:9: 'cable' is -5 m; give 0 to 200000 m"},
    {"length_without_unit", replaced("\"5m\"", "5"),
     "net.toml:12:9: 'cable' is an integer; write a length such as \"5m\""},
    {"speed_in_words", replaced("\"100G\"", "\"fast\""),
     "net.toml:11:9: 'speed' is \"fast\"; write a speed such as \"100G\""},
    {"disconnected_host", with("[[host]]\nname = \"h9\"\n"),
     "net.toml:19:1: host 'h9' has no link; join it with [[link]] or remove it"},
    {"duplicate_name", with("[[host]]\nname = \"h1\"\n"),
     "net.toml:19:1: two nodes are called 'h1'; give each node a name of its own"},
    {"duplicate_model",
     with("[[switch_model]]\nname = \"x\"\nbuffer = 9999\ncell = 1\n[[switch_model]]\nname = "
          "\"x\"\nbuffer = 9999\ncell = 1\n"),
     "net.toml:23:1: switch model 'x' is there twice"},
    {"unknown_model", replaced("generic-32m", "generic-33m"),
     "net.toml:4:9: no switch model 'generic-33m'; did you mean 'generic-32m'? known: "},
    {"unknown_node", replaced("\"h1\", \"s1\"", "\"h7\", \"s1\""), "net.toml:10:12: no node 'h7'"},
    {"self_link", replaced("\"h1\", \"s1\"", "\"s1\", \"s1\""), "a link of a node with itself"},
    {"port_twice", with("[[link]]\nbetween = [\"s1:Ethernet8\", \"h1\"]\nspeed = \"25G\"\ncable = \"1m\"\n"),
     "net.toml:20:12: port Ethernet8 of s1 has a link already"},
    {"port_without_a_name", replaced("s1:Ethernet8", "s1:"),
     "net.toml:14:18: '' is no name for a port of s1; use"},
    {"port_that_would_break_a_key", replaced("s1:Ethernet8", "s1:a|b"), "'a|b' is no name for a port of s1"},
    {"port_over_two_lines", replaced("s1:Ethernet8", "s1:a\\nb"), "is no name for a port of s1"},
    {"name_that_would_lead_out_of_the_folder", with("[[switch]]\nname = \"../x\"\nmodel = \"sn3700\"\n"),
     "'../x' is no name for a node; use letters"},
    {"name_that_is_the_folder_above", with("[[switch]]\nname = \"..\"\nmodel = \"sn3700\"\n"),
     "'..' is no name for a node"},
    {"name_over_two_lines", with("[[host]]\nname = \"a\\nb\"\n"), "is no name for a node"},
    {"name_that_would_break_a_picture", with("[[host]]\nname = \"<b>\"\n"), "'<b>' is no name for a node"},
    {"priority_of_nine", with("[lossless]\npriorities = [3, 9]\n"),
     "net.toml:20:18: 'priorities' has 9; give 0 to 7"},
    {"no_priority", with("[lossless]\npriorities = []\n"), "no lossless priority"},
    {"dscp_of_64", with("[dscp]\n64 = 3\n"), "net.toml:20:1: '64' is no DSCP"},
    {"alpha_out_of_range", with("[plan]\ndynamic_th = 4\n"),
     "net.toml:20:14: 'dynamic_th' is 4; give -7 to 3"},
    {"marks_upside_down", with("[plan]\nkmin = 5000\nkmax = 4000\n"), "kmin is above kmax"},
    {"watchdog_out_of_range", with("[plan]\nwatchdog_detection = \"50ms\"\n"),
     "'watchdog_detection' is 50000000 ns"},
    {"up_down_without_tiers", with("[routing]\nrule = \"up-down\"\n"), "needs to know what is up"},
    {"missing_file_of_models", "models = [\"gone.toml\"]\n" + std::string(small),
     "net.toml:1:11: cannot read the file of switch models 'gone.toml'"},
    {"over_subscription_of_private",
     with("[[switch_model]]\nname = \"x\"\nbuffer = 9999\ncell = 1\nover_subscription = 2\n"),
     "over_subscription means nothing with private headroom"},
    {"forwarding_longer_than_the_simulator_holds",
     with("[[switch_model]]\nname = \"x\"\nbuffer = 9999\ncell = 1\nforwarding = \"50ms\"\n"),
     "net.toml:23:14: 'forwarding' is 50000000 ns; give 0 to 10000000 ns"},
    {"two_parts",
     with("[[switch]]\nname = \"s2\"\nmodel = \"generic-32m\"\n[[host]]\nname = \"h3\"\n[[link]]\nbetween "
          "= [\"h3\", \"s2\"]\nspeed = \"25G\"\ncable = \"1m\"\n"),
     "no path from host 'h3' to host 'h1'; join their parts with [[link]]"},
    {"route_over_no_neighbor", with("[[route]]\nat = \"s1\"\nto = \"h1\"\nvia = \"h3\"\n"),
     "net.toml:22:7: 'h3' is no neighbor and no port of s1"},
    {"route_to_nobody", with("[[route]]\nat = \"s1\"\nto = []\nvia = \"h1\"\n"),
     "net.toml:21:6: a route to no host; name hosts"},
    {"route_over_nothing", with("[[route]]\nat = \"s1\"\nto = \"h1\"\nvia = []\n"),
     "net.toml:22:7: a route that leads nowhere; name the next"},
    {"route_over_another_host", with("[[route]]\nat = \"s1\"\nto = \"h1\"\nvia = \"h2\"\n"),
     "net.toml:22:7: 'h2' is a host, which passes nothing on to others; name a switch"},
    {"odd_fat_tree", with("[fat_tree]\nk = 5\n"), "k is 5; a k-ary fat tree needs an even k"},
};
INSTANTIATE_TEST_SUITE_P(all, NetworkMistake, testing::ValuesIn(mistakes),
                         [](const auto& row) { return std::string(row.param.name); });

// Then nothing can be said about the `via` of a route.
TEST(NetworkFile, route_at_no_switch_or_in_no_network_is_refused_for_that_alone) {
  const auto unknown = complaints_of(with("[[route]]\nat = \"s7\"\nto = \"h1\"\nvia = \"h3\"\n"));
  EXPECT_THAT(unknown, HasSubstr("s7"));
  EXPECT_THAT(unknown, testing::Not(HasSubstr("neighbor")));
  EXPECT_THAT(complaints_of("[[route]]\nvia = \"s1\"\n"), HasSubstr("name the switch that routes so"));
}

TEST(NetworkFile, loop_of_static_routes_is_refused_and_named) {
  Complaints complaints;
  std::string text = R"([[route]]
at = "s1"
to = "h3"
via = "s2"
[[route]]
at = "s2"
to = "h3"
via = "s1"
)";
  for (const auto* name : {"s1", "s2", "s3"})
    text += std::string("[[switch]]\nname = \"") + name +
            "\"\nmodel = \"generic-32m\"\n[[host]]\nname = \"h" + name[1] + "\"\n[[link]]\nbetween = [\"h" +
            name[1] + "\", \"" + name + "\"]\nspeed = \"25G\"\ncable = \"1m\"\n";
  for (const auto* pair : {"\"s1\", \"s2\"", "\"s2\", \"s3\"", "\"s3\", \"s1\""})
    text += std::string("[[link]]\nbetween = [") + pair + "]\nspeed = \"25G\"\ncable = \"1m\"\n";
  EXPECT_THAT(complaints_of(text),
              HasSubstr("net.toml:1:1: packets for 'h3' run in a loop: s1 -> s2 -> s1; change 'via'"));
}

TEST(NetworkFile, a_generator_beyond_the_limit_is_refused_before_it_fills_the_memory) {
  EXPECT_THAT(complaints_of(R"([leaf_spine]
spines = 60000
leaves = 60000
hosts_per_leaf = 60000
host_speed = "25G"
host_cable = "3m"
spine_speed = "100G"
spine_cable = "40m"
leaf_model = "generic-32m"
spine_model = "generic-32m"
)"),
              HasSubstr("net.toml:1:1: [leaf_spine] would be 3600120000 nodes; 200000 is the limit"));
  EXPECT_THAT(
      complaints_of(with("[[link]]\nbetween = [\"h1\", \"s1\"]\nspeed = \"1G\"\ncable = \"1m\"\ncount = 3\n"),
                    {.most_nodes = 4}),
      HasSubstr("[[link]] would be 5 links; 4 is the limit"));
}

TEST(NetworkFile, that_cannot_be_read_is_a_complaint) {
  const std::string hint = "; give the path of a network file\n", long_name(300, 'x');
  const std::pair<std::string, std::string> rows[] = {{"/nowhere/net.toml", "No such file or directory"},
                                                      {"/", "Is a directory"},
                                                      {long_name, "File name too long"}};
  for (const auto& [path, why] : rows) {
    Complaints complaints;
    EXPECT_FALSE(load_network(path, complaints));
    EXPECT_EQ(complaints.text(), path + ": cannot be read: " + why + hint);
  }
}

}  // namespace
}  // namespace weir::fabric
