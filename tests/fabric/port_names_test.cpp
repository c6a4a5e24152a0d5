// Port names compared with SONiC's own port_config.ini and platform.json.
#include "fabric/topology/port_names.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fabric/topology/read_network.hpp"

namespace weir::fabric {
namespace {

using testing::ElementsAre;

struct Links {
  const char* speed;
  int count;
};

// A switch of the model with these links to hosts; returns its ports' names in the order of the links.
std::vector<Port> ports_of(const std::string& model, std::initializer_list<Links> links,
                           const std::string& rest = "", const FileOpener& open = nullptr) {
  std::string text = rest + "\n[[switch]]\nname = \"s\"\nmodel = \"" + model + "\"\n";
  for (const auto& [speed, count] : links)
    for (int i = 0; i < count; ++i) {
      const auto host = "h" + std::to_string(text.size());
      text += "[[host]]\nname = \"" + host + "\"\n[[link]]\nbetween = [\"" + host + "\", \"s\"]\nspeed = \"" +
              speed + "\"\ncable = \"1m\"\n";
    }
  Complaints complaints;
  const auto network = read_network(
      text, "net.toml", open ? open : [](const std::string&) { return std::nullopt; }, complaints);
  EXPECT_TRUE(network) << complaints.text();
  std::vector<Port> ports;
  if (network)
    for (const auto port : (*network)[*network->find("s")].ports) ports.push_back((*network)[port]);
  return ports;
}

std::vector<std::string> names(const std::vector<Port>& ports) {
  std::vector<std::string> out;
  for (const auto& port : ports) out.push_back(port.on_front ? port.name : "!" + port.name);
  return out;
}

TEST(PortNames, are_those_of_the_front) {
  EXPECT_THAT(names(ports_of("sn3420", {{"25G", 3}, {"100G", 2}})),
              ElementsAre("Ethernet0", "Ethernet4", "Ethernet8", "Ethernet192", "Ethernet196"));
  EXPECT_THAT(names(ports_of("sn4700", {{"400G", 3}})), ElementsAre("Ethernet0", "Ethernet8", "Ethernet16"));
  EXPECT_THAT(names(ports_of("sn5600", {{"800G", 2}, {"25G", 1}})),
              ElementsAre("Ethernet0", "Ethernet8", "Ethernet512"));
  EXPECT_EQ(names(ports_of("sn3420", {{"25G", 48}, {"100G", 12}})).back(), "Ethernet236");
  EXPECT_EQ(names(ports_of("z9332f", {{"400G", 32}})).back(), "Ethernet248");
  EXPECT_EQ(names(ports_of("z9664f", {{"400G", 64}})).back(), "Ethernet252");
  EXPECT_EQ(names(ports_of("7060x6_64pe", {{"800G", 64}})).back(), "Ethernet504");
  EXPECT_EQ(names(ports_of("7800r3_48cq2_lc", {{"100G", 48}})).back(), "Ethernet188");
  EXPECT_EQ(names(ports_of("7280r4_64o", {{"400G", 64}})).back(), "Ethernet252");
  EXPECT_EQ(names(ports_of("sn4600c", {{"100G", 64}})).back(), "Ethernet252");
  EXPECT_EQ(names(ports_of("nh_4210", {{"800G", 128}, {"100G", 1}})).back(), "Ethernet1024");
  EXPECT_EQ(names(ports_of("nh_4210", {{"400G", 256}})).back(), "Ethernet1020");
  EXPECT_EQ(names(ports_of("7220_h6_128", {{"100G", 1024}})).back(),
            "Ethernet1022");  // one took Ethernet1024
  EXPECT_EQ(names(ports_of("s5448f", {{"100G", 48}, {"400G", 8}})).back(), "Ethernet152");
  EXPECT_EQ(names(ports_of("sn2201", {{"1G", 48}, {"100G", 4}})).back(), "Ethernet60");
  EXPECT_EQ(names(ports_of("sn5400", {{"400G", 64}})).back(), "Ethernet504");
}

// platform.json of these has no breakout_modes.
TEST(PortNames, no_port_is_split_where_sonic_splits_none) {
  EXPECT_EQ(names(ports_of("z9664f", {{"100G", 65}})).back().front(), '!');
  EXPECT_EQ(names(ports_of("7280r4_64o", {{"100G", 65}})).back().front(), '!');
}

TEST(PortNames, a_slow_link_takes_the_slowest_port_that_is_fast_enough) {
  EXPECT_EQ(names(ports_of("sn3420", {{"25G", 49}})).back(), "Ethernet192");
  EXPECT_THAT(names(ports_of("sn3420", {{"50G", 1}, {"10G", 1}})), ElementsAre("Ethernet192", "Ethernet0"));
}

TEST(PortNames, ports_are_split_where_there_are_too_few) {
  const auto split = ports_of("sn5600", {{"400G", 128}});
  EXPECT_THAT(names({split.begin(), split.begin() + 3}), ElementsAre("Ethernet0", "Ethernet4", "Ethernet8"));
  EXPECT_EQ(split.back().name, "Ethernet508");
  EXPECT_EQ(split.back().lanes, 4u);
  const auto fourths = ports_of("sn4700", {{"100G", 128}});
  EXPECT_THAT(names({fourths.begin(), fourths.begin() + 3}),
              ElementsAre("Ethernet0", "Ethernet2", "Ethernet4"));
  EXPECT_EQ(ports_of("sn4700", {{"400G", 1}}).front().lanes, 8u);
  // 60 whole ports and 16 quarters would not fit; halves leave room.
  const auto mixed = names(ports_of("sn5600", {{"400G", 60}, {"200G", 100}}));
  EXPECT_THAT(mixed, testing::Each(testing::Not(testing::StartsWith("!"))));
  EXPECT_EQ(std::set(mixed.begin(), mixed.end()).size(), mixed.size());
}

TEST(PortNames, links_without_a_port_say_so) {
  EXPECT_EQ(names(ports_of("msn2700", {{"100G", 33}})).back(), "!Ethernet128");
  EXPECT_THAT(names(ports_of("sn4600c", {{"400G", 1}})), ElementsAre("!Ethernet256"));
}

TEST(PortNames, names_of_the_file_are_looked_up) {
  const std::string host =
      "[[host]]\nname = \"x\"\n[[link]]\nspeed = \"25G\"\ncable = \"1m\"\nbetween = [\"x\", \"s:";
  const std::pair<const char*, const char*> rows[] = {{"Ethernet4", "Ethernet4"},
                                                      {"Ethernet2", "!Ethernet2"},
                                                      {"Ethernet193", "Ethernet193"},
                                                      {"swp1", "!swp1"}};
  for (const auto& [name, expected] : rows)
    EXPECT_THAT(names(ports_of("sn3420", {{"25G", 2}}, host + name + "\"]\n")), testing::Contains(expected))
        << name;
  EXPECT_THAT(names(ports_of("sn3420", {{"25G", 2}}, host + "Ethernet0\"]\n")),
              ElementsAre("Ethernet0", "Ethernet4", "Ethernet8"));
}

TEST(PortNames, two_names_in_one_port_of_the_front_split_it) {
  const auto named = [](std::initializer_list<const char*> names) {
    std::string text;
    for (const auto* name : names)
      text += fmt::format(
          "[[host]]\nname = \"x-{0}\"\n[[link]]\nspeed = \"400G\"\ncable = \"1m\"\nbetween = [\"x-{0}\", "
          "\"s:{0}\"]\n",
          name);
    std::map<std::string, std::uint32_t> lanes;
    for (const auto& port : ports_of("sn5600", {{"800G", 1}}, text))
      lanes[port.name] = port.on_front ? port.lanes : 0;
    return lanes;
  };
  using Lanes = std::map<std::string, std::uint32_t>;
  EXPECT_EQ(named({"Ethernet0"}), (Lanes{{"Ethernet0", 8}, {"Ethernet8", 8}}));
  EXPECT_EQ(named({"Ethernet4", "Ethernet0"}), (Lanes{{"Ethernet0", 4}, {"Ethernet4", 4}, {"Ethernet8", 8}}));
  EXPECT_EQ(named({"Ethernet8", "Ethernet10"}),
            (Lanes{{"Ethernet0", 8}, {"Ethernet8", 0}, {"Ethernet10", 0}}));
}

TEST(PortNames, a_port_may_be_slower_whole_than_its_parts_together) {
  EXPECT_THAT(names(ports_of("sn6600_ld", {{"800G", 2}, {"100G", 2}})),
              ElementsAre("Ethernet0", "Ethernet8", "Ethernet512", "Ethernet513"));
  const auto halves = ports_of("sn6600_ld", {{"800G", 128}});
  EXPECT_EQ(halves[1].name, "Ethernet4");
  EXPECT_EQ(halves[1].lanes, 4u);
  EXPECT_THAT(names(halves), testing::Each(testing::Not(testing::StartsWith("!"))));
  EXPECT_THAT(names(ports_of("sn5640", {{"800G", 1}})), ElementsAre("!Ethernet521"));
}

constexpr const char* port_config = R"(## Copyright
# name          lanes          alias   index   speed
Ethernet0       0,1,2,3,4,5,6,7  etp1    1     400000
Ethernet8       8,9            etp2a   2       100000
Ethernet10      10,11          etp2b   2       100000
Ethernet-Rec0   12             Rec0    3       10000
)";

TEST(PortNames, come_from_sonics_port_config) {
  const auto ports = ports_of(
      "mine", {{"100G", 2}, {"400G", 1}},
      "[[switch_model]]\nname = \"mine\"\nbuffer = \"8MiB\"\ncell = 144\nport_config = \"port_config.ini\"\n",
      [](const std::string& name) {
        return name == "port_config.ini" ? std::optional<std::string>(port_config) : std::nullopt;
      });
  EXPECT_THAT(names(ports), ElementsAre("Ethernet8", "Ethernet10", "Ethernet0"));
  EXPECT_EQ(ports.back().lanes, 8u);
}

// As in platform.json: a port, the ways to split it, and the names of the parts.
constexpr const char* platform = R"json({"chassis": {"name": "X"}, "interfaces": {
"Ethernet8": {"index": "2,2,2,2,2,2,2,2", "lanes": "8,9,10,11,12,13,14,15",
  "breakout_modes": {"1x800G": ["etp2"], "2x800G[400G]": ["etp2a", "etp2b"],
    "2x400G[200G](4)+1x800G[400G](4)": ["etp2a", "etp2b", "etp2c"], "8x200G[100G]": []}},
"Ethernet0": {"lanes": "0,1,2,3,4,5,6,7", "breakout_modes": {"1x800G": ["etp1"], "2x800G[400G]": []}},
"Ethernet16": {"lanes": "16,17", "breakout_modes": {"2x100G": ["etp65a", "etp65b"]}},
"Ethernet-Rec0": {"lanes": "9", "breakout_modes": {"1x10G": []}},
"Ethernet24": {"lanes": 3}, "Ethernet32": {"lanes": "1,2", "breakout_modes": {"3x10G": [], "0x1G": [], "1xG": []}}
}})json";

TEST(PortNames, come_from_sonics_platform_json) {
  const auto of = [](std::initializer_list<Links> links) {
    return ports_of(
        "mine", links,
        "[[switch_model]]\nname = \"mine\"\nbuffer = \"8MiB\"\ncell = 256\nport_config = \"platform.json\"\n",
        [](const std::string& name) {
          return name == "platform.json" ? std::optional<std::string>(platform) : std::nullopt;
        });
  };
  EXPECT_THAT(names(of({{"800G", 2}, {"100G", 2}})),
              ElementsAre("Ethernet0", "Ethernet8", "Ethernet16", "Ethernet17"));
  EXPECT_THAT(names(of({{"800G", 4}})), ElementsAre("Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12"));
  const auto eighths = of({{"200G", 10}});
  EXPECT_EQ(eighths.back().name, "Ethernet15");
  EXPECT_EQ(eighths.back().lanes, 1u);
  EXPECT_EQ(eighths.front().lanes, 4u);
}

TEST(PortNames, a_platform_json_without_ports_is_a_complaint) {
  for (const auto* text : {"{}", "{", "[]", "{\"interfaces\": []}", "{\"interfaces\": {\"Ethernet0\": {}}}",
                           "{\"interfaces\": {\"Ethernet99999999\": {\"lanes\": \"1\", \"breakout_modes\": "
                           "{\"1x1G\": []}}}}"}) {
    Complaints complaints;
    EXPECT_TRUE(read_port_config(text, {}, complaints).empty()) << text;
    EXPECT_THAT(complaints.text(), testing::HasSubstr("platform.json")) << text;
  }
}

TEST(PortNames, a_port_config_without_speeds_tells_lanes) {
  Complaints complaints;
  const auto ranges = read_port_config(
      "# name lanes alias index\nEthernet188 188 etp48 48\nEthernet192 192,193,194,195 etp49 49\n", {},
      complaints);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].modes.front().speed_bps, 25'000'000'000u);
  EXPECT_EQ(ranges[1].modes.front().speed_bps, 100'000'000'000u);
  EXPECT_EQ(ranges[1].first, 192u);
  EXPECT_TRUE(complaints.none());
  read_port_config("{}", {}, complaints);
  EXPECT_FALSE(complaints.none());
}

}  // namespace
}  // namespace weir::fabric
