// Network files from what containerlab, NetBox, LLDP and SONiC know, each in the form in which that tool
// writes it.
#include "fabric/topology/cabling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/topology/read_network.hpp"

namespace weir::fabric {
namespace {

using testing::HasSubstr;
using testing::Not;

struct File {
  const char *path, *text;
};

std::string imported(std::initializer_list<File> files, const CablingDefaults& defaults = {}) {
  Cabling cabling;
  Complaints complaints;
  for (const auto& [path, text] : files) read_cabling(text, path, cabling, complaints);
  EXPECT_TRUE(complaints.none()) << complaints.text();
  cabling.guess_hosts();
  return network_file(cabling, defaults);
}

Network network_of(const std::string& text) {
  Complaints complaints;
  auto network =
      read_network(text, "imported.toml", [](const std::string&) { return std::nullopt; }, complaints);
  EXPECT_TRUE(network) << complaints.text() << text;
  return network ? *std::move(network) : Network{};
}

// "h1 s1:Ethernet0 100G 3m" for each link.
std::vector<std::string> links_of(const Network& network) {
  std::vector<std::string> out;
  for (const auto& link : network.links) {
    std::string line;
    for (const auto port : {link.a, link.b}) {
      const auto& node = network[network[port].node];
      line += node.name + (node.kind == NodeKind::host ? "" : ":" + network[port].name) + " ";
    }
    out.push_back(line + std::to_string(link.speed_bps / 1'000'000'000) + "G " +
                  std::to_string(static_cast<int>(link.cable.length_m)) + "m");
  }
  return out;
}

TEST(Cabling, containerlabs_topology_data_becomes_a_network) {
  for (const std::string form : {R"({"a": A, "z": Z})", R"({"endpoints": {"a": A, "z": Z}})"}) {
    const auto link = [&form](std::string a, std::string z) {
      auto out = form;
      out.replace(out.find("A"), 1, R"({"node": ")" + a + R"(", "interface": "e1-1"})");
      return out.replace(out.find("Z"), 1, R"({"node": ")" + z + R"(", "interface": "eth1"})");
    };
    const auto text = R"({"name": "lab", "type": "clab", "nodes": {"leaf": {"kind": "sonic-vs"},
        "a": {"kind": "linux"}, "b": {"kind": "linux"}}, "links": [)" +
                      link("leaf", "a") + "," + link("b", "leaf") + "]}";
    const auto network = network_of(imported({{"topology-data.json", text.c_str()}}));
    EXPECT_THAT(links_of(network),
                testing::ElementsAre("leaf:Ethernet0 a 100G 3m", "b leaf:Ethernet4 100G 3m"));
  }
}

constexpr const char* netbox = R"({"count": 2, "results": [
  {"a_terminations": [{"object_type": "dcim.interface", "object_id": 1,
                       "object": {"name": "Ethernet0", "device": {"name": "leaf1"}}}],
   "b_terminations": [{"object_type": "dcim.interface", "object_id": 2,
                       "object": {"name": "eth0", "device": {"name": "h1"}}}],
   "length": 200.0, "length_unit": {"value": "cm", "label": "Centimeters"}},
  {"a_terminations": [{"object_type": "dcim.interface", "object_id": 3,
                       "object": {"name": "Ethernet4", "device": {"name": "leaf1"}}}],
   "b_terminations": [{"object_type": "dcim.interface", "object_id": 4,
                       "object": {"name": "eth0", "device": {"name": "h2"}}}],
   "length": 10, "length_unit": "ft"},
  {"a_terminations": [{"object_type": "dcim.powerport", "object_id": 5,
                       "object": {"name": "PSU0", "device": {"name": "leaf1"}}}],
   "b_terminations": [{"object_type": "dcim.poweroutlet", "object_id": 6,
                       "object": {"name": "1", "device": {"name": "pdu"}}}]}]})";

TEST(Cabling, netboxs_cables_keep_their_lengths_and_power_is_left_out) {
  const auto text = imported({{"cables.json", netbox}}, {"25G", "7m", "sn3420"});
  EXPECT_THAT(links_of(network_of(text)),
              testing::ElementsAre("leaf1:Ethernet0 h1 25G 2m", "leaf1:Ethernet4 h2 25G 3m"));
  EXPECT_THAT(text, HasSubstr("# Cables of an unknown speed: 2. \"25G\" is assumed.\n"));
  EXPECT_THAT(text, Not(HasSubstr("unknown length")));
}

// What a leaf and a spine say of each other, in both forms of lldpcli. The leaf sees the spine's alias.
constexpr const char* leaf_json = R"({"lldp": {"interface": [
  {"Ethernet48": {"via": "LLDP", "chassis": {"spine1": {"id": {"type": "mac", "value": "00:11:22:33:44:55"},
     "capability": [{"type": "Bridge", "enabled": true}, {"type": "Router", "enabled": true}]}},
     "port": {"id": {"type": "local", "value": "etp1"}, "descr": "etp1"}}},
  {"Ethernet0": {"via": "LLDP", "chassis": {"h1": {"id": {"type": "mac", "value": "00:11:22:33:44:56"},
     "capability": {"type": "Station", "enabled": true}}},
     "port": {"id": {"type": "mac", "value": "00:11:22:33:44:57"}, "descr": "eth0"}}}]}})";
constexpr const char* spine_json0 = R"({"lldp": [{"interface": [{"name": "Ethernet8", "via": "LLDP",
  "chassis": [{"id": [{"type": "mac", "value": "aa"}], "name": [{"value": "leaf1"}],
               "capability": [{"type": "Bridge", "enabled": true}]}],
  "port": [{"id": [{"type": "local", "value": "etp7"}], "descr": [{"value": "Ethernet48"}]}]}]}]})";

TEST(Cabling, a_link_that_both_ends_report_by_lldp_is_one_link_with_sonics_names) {
  const auto both = imported({{"run/leaf1.json", leaf_json}, {"run/spine1.json", spine_json0}});
  EXPECT_THAT(links_of(network_of(both)), testing::ElementsAre("leaf1:Ethernet48 spine1:Ethernet8 100G 3m",
                                                               "leaf1:Ethernet0 h1 100G 3m"));
  const auto one = imported({{"run/leaf1.json", leaf_json}});
  EXPECT_THAT(links_of(network_of(one)).front(), testing::StartsWith("leaf1:Ethernet48 spine1:"));
}

constexpr const char* leaf_config =
    R"({"DEVICE_METADATA": {"localhost": {"hostname": "leaf1", "hwsku": "ACS-MSN3420"}},
  "PORT": {"Ethernet0": {"speed": "25000"}, "Ethernet192": {"speed": "100000"}},
  "CABLE_LENGTH": {"AZURE": {"Ethernet0": "5m", "Ethernet192": "40m"}},
  "DEVICE_NEIGHBOR": {"Ethernet0": {"name": "h1", "port": "eth0"}, "Ethernet192": {"name": "spine1", "port": "Ethernet0"}},
  "DEVICE_NEIGHBOR_METADATA": {"h1": {"type": "Server"}, "spine1": {"type": "LeafRouter"}}})";

TEST(Cabling, sonics_configuration_gives_speeds_lengths_and_the_model) {
  const auto network = network_of(imported({{"leaf1/config_db.json", leaf_config}}));
  EXPECT_THAT(links_of(network), testing::ElementsAre("leaf1:Ethernet0 h1 25G 5m",
                                                      "leaf1:Ethernet192 spine1:Ethernet0 100G 40m"));
  EXPECT_EQ(network.model_of(network[*network.find("leaf1")]).name, "sn3420");
}

TEST(Cabling, what_cannot_be_read_is_said_with_the_files_name) {
  const std::pair<const char*, const char*> rows[] = {
      {"name: lab\ntopology:\n", "lab.clab.yml: not JSON; containerlab writes topology-data.json"},
      {"{\"a\": 1}", "lab.clab.yml: not a file that --import knows"},
      {"[]", "lab.clab.yml: no cable between two named devices"},
      {R"({"links": [1, {"a": "x"}], "nodes": []})", "no cable"},
      {R"({"results": [{"a_terminations": 3}, {"a_terminations": [], "b_terminations": []}]})", "no cable"},
      {R"({"lldp": {"interface": [1, "x", {"eth0": 7}]}})", "no cable"},
      {R"({"DEVICE_NEIGHBOR": {"Ethernet0": 5, "Ethernet4": {"name": 3}}})", "no cable"},
  };
  for (const auto& [text, said] : rows) {
    Cabling cabling;
    Complaints complaints;
    read_cabling(text, "lab.clab.yml", cabling, complaints);
    EXPECT_THAT(complaints.text(), HasSubstr(said));
    EXPECT_THAT(network_file(cabling, {}), HasSubstr("name = \"imported\""));
  }
}

TEST(Cabling, names_cannot_leave_their_quotes) {
  const auto text = imported({{"l.json", R"({"links": [{"a": {"node": "x\"\n[[host]]", "interface": "e"},
      "z": {"node": "y", "interface": "e"}}], "nodes": {}})"}});
  Complaints complaints;
  EXPECT_FALSE(read_network(text, "l.toml", [](const std::string&) { return std::nullopt; }, complaints));
  EXPECT_THAT(complaints.text(), HasSubstr("is no name for a node"));
}

}  // namespace
}  // namespace weir::fabric
