// The plan of a network: splits that add up, findings for wrong settings, and
// configuration that SONiC accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fabric/plan/plan_network.hpp"
#include "fabric/plan/report.hpp"
#include "fabric/plan/sonic_config.hpp"
#include "fabric/topology/read_network.hpp"

namespace weir::fabric {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Two leaves with a spine; a test inserts its changes at the front, and into the switch model.
std::string small(std::string_view front = "", std::string_view model = "buffer = \"8MiB\"") {
  return std::string(front) + R"(
[leaf_spine]
spines = 2
leaves = 2
hosts_per_leaf = 4
host_speed = "25G"
host_cable = "3m"
spine_speed = "100G"
spine_cable = "40m"
leaf_model = "mine"
spine_model = "mine"
[dscp]
26 = 3
34 = 4
[[switch_model]]
name = "mine"
cell = 144
pipeline = "19KiB"
mac_phy = 819.2
)" + std::string(model) +
         "\n";
}

struct Planned {
  Network network;
  Plan plan;
  std::vector<std::string> codes(Severity severity) const {
    std::vector<std::string> out;
    for (const auto& finding : plan.findings)
      if (finding.severity == severity) out.push_back(finding.code);
    return out;
  }
};

std::unique_ptr<Planned> planned(const std::string& text) {
  Complaints complaints;
  auto network = read_network(text, "net.toml", [](const std::string&) { return std::nullopt; }, complaints);
  EXPECT_TRUE(network) << complaints.text();
  auto out = std::make_unique<Planned>();
  if (!network) return out;
  out->network = std::move(*network);
  out->plan = plan_network(out->network);
  return out;
}

std::unique_ptr<Planned> shipped(const std::string& name) {
  std::ifstream file(NETWORKS_DIR "/" + name + ".toml");
  std::ostringstream text;
  text << file.rdbuf();
  return planned(text.str());
}

TEST(Plan, parts_of_the_buffer_add_up) {
  for (const auto* name : {"reference-rig", "fat-tree-320", "ring"}) {
    const auto rig = shipped(name);
    for (const auto& kind : rig->plan.switches) {
      const auto& split = kind.split;
      EXPECT_TRUE(split.fits) << name;
      EXPECT_EQ(split.reserved + split.guaranteed + split.headroom + split.shared, split.buffer) << name;
      std::size_t ports = 0;
      for (const auto& port : kind.ports) ports += port.ports_per_switch;
      EXPECT_EQ(ports, kind.port_count) << name;
    }
  }
}

TEST(Plan, alike_switches_and_ports_are_planned_once) {
  const auto rig = shipped("reference-rig");
  ASSERT_EQ(rig->plan.switches.size(), 2u);
  const auto& spines = rig->plan.switches[0];
  const auto& leaves = rig->plan.switches[1];
  EXPECT_EQ(spines.switches.size(), 8u);
  EXPECT_EQ(leaves.switches.size(), 64u);
  ASSERT_EQ(leaves.ports.size(), 2u);
  EXPECT_EQ(leaves.ports[0].ports_per_switch, 48u);
  EXPECT_EQ(leaves.ports[1].ports_per_switch, 8u);
  EXPECT_EQ(leaves.ports[1].ports.size(), 512u);
  // 2 priorities of 48 and 8 ports, each with the formula's headroom
  EXPECT_EQ(leaves.split.headroom_sum, 2 * (48 * leaves.ports[0].xoff + 8 * leaves.ports[1].xoff));
}

TEST(Plan, headroom_is_the_larger_of_the_two_forms_unless_only_sonics_is_asked_for) {
  const auto* slow = "buffer = \"8MiB\"\npfc_generation = \"5us\"";
  const auto larger = planned(small("", slow)),
             sonic = planned(small("[plan]\nheadroom = \"sonic\"\n", slow));
  const auto& planned_ports = larger->plan.switches[0].ports;
  for (std::size_t p = 0; p < planned_ports.size(); ++p) {
    EXPECT_GT(planned_ports[p].in_principle.bytes, planned_ports[p].headroom.xoff);
    EXPECT_GE(planned_ports[p].xoff, planned_ports[p].in_principle.bytes);
    EXPECT_LT(planned_ports[p].xoff, planned_ports[p].in_principle.bytes + 1024);
    EXPECT_EQ(sonic->plan.switches[0].ports[p].xoff, planned_ports[p].headroom.xoff);
  }
}

TEST(Plan, shared_pool_is_the_sum_over_its_ratio_in_KiB) {
  const auto network =
      planned(small("", "buffer = \"8MiB\"\nheadroom_pool = \"shared\"\nover_subscription = 3"));
  for (const auto& kind : network->plan.switches) {
    EXPECT_EQ(kind.split.headroom % 1024, 0u);
    EXPECT_GE(kind.split.headroom * 3, kind.split.headroom_sum);
    EXPECT_LT((kind.split.headroom - 1024) * 3, kind.split.headroom_sum);
  }
  EXPECT_THAT(network->codes(Severity::warning), Contains("shared_headroom"));
}

TEST(Plan, ecn_acts_before_pfc_unless_told_otherwise) {
  for (const auto* name : {"reference-rig", "fat-tree-320"}) {
    const auto network = shipped(name);
    for (const auto& kind : network->plan.switches)
      for (const auto& port : kind.ports) {
        EXPECT_TRUE(port.marks.before_pfc);
        EXPECT_LT(port.marks.kmin_bytes, port.marks.kmax_bytes);
        EXPECT_LE(port.marks.kmax_bytes, kind.xoff_limit);
      }
  }
}

TEST(Plan, a_good_network_has_neither_fault_nor_warning) {
  const auto rig = shipped("reference-rig");
  EXPECT_FALSE(rig->plan.has(Severity::fault));
  EXPECT_FALSE(rig->plan.has(Severity::warning)) << table_report(rig->plan);
}

struct MisSet {
  const char* name;
  std::string text;
  Severity severity;
  const char* code;
};
class MisSetNetwork : public testing::TestWithParam<MisSet> {};

TEST_P(MisSetNetwork, is_told_so) {
  EXPECT_THAT(planned(small())->codes(GetParam().severity), Not(Contains(GetParam().code)));
  EXPECT_THAT(planned(GetParam().text)->codes(GetParam().severity), Contains(GetParam().code));
}

const MisSet mis_set[] = {
    {"buffer_smaller_than_its_headroom", small("", "buffer = \"400KiB\""), Severity::fault,
     "headroom_does_not_fit"},
    {"more_ports_than_the_model_has", small("", "buffer = \"8MiB\"\ncapacity = \"250G\""), Severity::warning,
     "ports_beyond_capacity"},
    {"kmax_above_xoff", small("[plan]\nkmax = \"6MB\"\n"), Severity::warning, "ecn_above_pfc"},
    {"alpha_too_small_for_the_marks", small("[plan]\ndynamic_th = -7\nkmax = \"400KB\"\n"), Severity::warning,
     "ecn_above_pfc"},
    {"kmin_of_one_frame", small("[plan]\nkmin = 1024\n"), Severity::warning, "kmin_below_two_frames"},
    {"pfc_before_the_first_cnp", small("[plan]\ndynamic_th = -7\n[traffic]\nincast = 64\nrtt = \"50us\"\n"),
     Severity::warning, "pfc_before_first_cnp"},
    {"slow_pfc_generation",
     small("[plan]\nheadroom = \"sonic\"\n", "buffer = \"8MiB\"\npfc_generation = \"50us\""),
     Severity::warning, "headroom_short"},
    {"lossless_priority_without_traffic",
     small("[lossless]\npriorities = [3, 5]\n[scheduling]\nstrict = [3]\n"), Severity::warning,
     "strict_lossless_priority"},
    {"best_effort_in_a_lossless_priority", small("[lossless]\npriorities = [1, 3]\n"), Severity::warning,
     "best_effort_is_lossless"},
    {"more_links_than_the_switch_has_ports",
     small("", "buffer = \"8MiB\"\nports = [{ first = 0, count = 5, lanes = 4, speed = \"100G\" }]"),
     Severity::fault, "no_such_port"},
    {"asymmetric_cable",
     small() + "[[link]]\nbetween = [\"leaf1\", \"spine1\"]\nspeed = \"100G\"\ncable = \"40m\"\nreturn_cable "
               "= \"90m\"\n",
     Severity::warning, "asymmetric_cable"},
    {"unequal_parallel_cables",
     small() + "[[link]]\nbetween = [\"leaf1\", \"spine1\"]\nspeed = \"100G\"\ncable = \"90m\"\n",
     Severity::warning, "unequal_parallel_cables"},
};
INSTANTIATE_TEST_SUITE_P(all, MisSetNetwork, testing::ValuesIn(mis_set),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Plan, ports_up_to_the_models_capacity_are_no_finding) {
  const auto full =
      planned(small("", "buffer = \"8MiB\"\ncapacity = \"300G\""));  // the switch with the most ports
  EXPECT_THAT(full->codes(Severity::warning), Not(Contains("ports_beyond_capacity")));
}

TEST(Plan, a_switch_with_one_port_has_no_incast) {
  const auto one = planned(R"([[switch]]
name = "s"
model = "generic-32m"
[[host]]
name = "h"
[[link]]
between = ["s", "h"]
speed = "100G"
cable = "1m"
)");
  EXPECT_THAT(one->codes(Severity::warning), testing::IsEmpty()) << table_report(one->plan);
}

TEST(Plan, findings_name_speeds_that_are_no_whole_gigabits) {
  auto text = small("[plan]\nkmin = 1024\n");
  text.replace(text.find("25G"), 3, "2.5G");
  EXPECT_THAT(table_report(planned(text)->plan), HasSubstr("ports of 2.5G: Kmin of"));
}

TEST(Plan, cyclic_network_is_a_fault_that_names_the_circle) {
  const auto ring = shipped("ring");
  EXPECT_THAT(ring->codes(Severity::fault), Contains("cyclic_buffer_dependency"));
  EXPECT_THAT(table_report(ring->plan), HasSubstr("s1 -> s2 -> s3 -> s4 -> s5 -> s1"));
}

TEST(Plan, oversubscribed_links_are_those_of_more_offered_than_carried) {
  const auto rig = shipped("reference-rig");
  ASSERT_EQ(rig->plan.hot_links.size(), 1024u);  // each leaf's 8 links up, and as many down
  // 48 x 25G up and down 8 x 100G, except for traffic that stays below its leaf: one group in 64
  EXPECT_NEAR(rig->plan.hot_links.front().share, 48 * 25.0 / 800 * 63 / 64, 1e-9);
}

TEST(Report, json_is_json_and_holds_every_port_once) {
  const auto rig = shipped("reference-rig");
  const auto report = json::parse(json_report(rig->plan));
  std::size_t ports = 0;
  for (const auto& kind : report["switches"])
    for (const auto& port : kind["ports"]) ports += port["ports"].size();
  EXPECT_EQ(ports, 64u * 56 + 8 * 64);
  EXPECT_EQ(report["deadlock"]["failures_examined"], 512);
}

TEST(Report, html_stands_alone_and_escapes_names) {
  auto ring = shipped("ring");
  ring->network.name = "<script>";
  const auto html = html_report(ring->plan);
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr("<line class=\"cyclic\""));
  for (const auto* reference : {"src=", "href=", "@import"}) EXPECT_THAT(html, Not(HasSubstr(reference)));
}

TEST(Report, same_network_gives_the_same_bytes) {
  const auto one = shipped("fat-tree-320"), two = shipped("fat-tree-320");
  EXPECT_EQ(table_report(one->plan), table_report(two->plan));
  EXPECT_EQ(json_report(one->plan), json_report(two->plan));
  EXPECT_EQ(html_report(one->plan), html_report(two->plan));
}

// The first and the last switch of each kind: those between differ only in name.
std::vector<json> configs(const Planned& planned) {
  std::vector<json> out;
  for (const auto& kind : planned.plan.switches) {
    out.push_back(json::parse(sonic_config(planned.plan, kind, kind.switches.front())));
    if (kind.switches.size() > 1)
      out.push_back(json::parse(sonic_config(planned.plan, kind, kind.switches.back())));
  }
  return out;
}

std::uint64_t as_number(const json& value) { return std::stoull(value.get<std::string>()); }

TEST(SonicConfig, ports_of_one_profile_have_the_headroom_of_the_one_that_needs_most) {
  const auto slow = planned(small() + R"([[host]]
name = "far"
[[link]]
between = ["leaf1", "far"]
speed = "25G"
cable = "3m"
ns_per_m = 100
)");
  for (const auto& kind : slow->plan.switches) {
    const auto config = json::parse(sonic_config(slow->plan, kind, kind.switches[0]));
    std::uint64_t sum = 0;
    for (const auto& port : kind.ports) {
      EXPECT_EQ(as_number(config["BUFFER_PROFILE"][port.profile]["xoff"]), port.xoff) << port.profile;
      EXPECT_GE(port.xoff, port.in_principle.bytes) << port.profile;
      sum += port.ports_per_switch * 2 * port.xoff;
    }
    EXPECT_EQ(kind.split.headroom_sum, sum);
  }
}

TEST(SonicConfig, lossy_traffic_stays_out_of_the_priority_groups_that_pause) {
  struct Row {
    const char* lossless;
    const char* group;  // of all other switches
  };
  for (const auto& row :
       {Row{"3, 4", "0"}, Row{"0", "1"}, Row{"0, 1, 7", "2"}, Row{"0, 1, 2, 3, 4, 5, 6, 7", ""}}) {
    const auto of = planned(small(std::string("[lossless]\npriorities = [") + row.lossless + "]\n"));
    const auto& classes = of->network.classes;
    for (const auto& config : configs(*of)) {
      for (std::size_t p = 0; p < priorities; ++p)
        EXPECT_EQ(config["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"][std::to_string(p)],
                  classes.is_lossless(p) || p == 7 ? std::to_string(p) : row.group)
            << row.lossless;
      for (const auto& [key, entry] : config["BUFFER_PG"].items())
        EXPECT_EQ(entry["profile"] == "ingress_lossy_profile",
                  key.ends_with(std::string("|") + row.group) && *row.group)
            << key;
    }
  }
}

TEST(SonicConfig, shared_headroom_has_a_pool_and_profiles_without_their_own) {
  const auto rig = shipped("reference-rig");
  const auto& spines = rig->plan.switches[0];
  const auto config = json::parse(sonic_config(rig->plan, spines, spines.switches[0]));
  EXPECT_EQ(as_number(config["BUFFER_POOL"]["ingress_lossless_pool"]["xoff"]), spines.split.headroom);
  const auto& profile = config["BUFFER_PROFILE"]["pg_lossless_100000_40m_profile"];
  EXPECT_EQ(profile["size"], profile["xon"]);
  const auto& leaves = rig->plan.switches[1];
  const auto leaf = json::parse(sonic_config(rig->plan, leaves, leaves.switches[0]));
  EXPECT_FALSE(leaf["BUFFER_POOL"]["ingress_lossless_pool"].contains("xoff"));
}

// The whole file of one small switch, byte for byte, so that a change of it shows what a switch will be told.
TEST(SonicConfig, file_of_a_leaf_is_the_golden_one) {
  const auto network = planned(small());
  const auto& kind = network->plan.switches.back();
  ASSERT_EQ(network->network[kind.switches[0]].name, "leaf1");
  const auto text = sonic_config(network->plan, kind, kind.switches[0]);
  std::ifstream file(GOLDEN_DIR "/leaf1.config_db.json");
  std::ostringstream golden;
  golden << file.rdbuf();
  if (text == golden.str()) return;
  if (std::getenv("WEIR_WRITE_GOLDEN")) std::ofstream(GOLDEN_DIR "/leaf1.config_db.json") << text;
  EXPECT_EQ(text, golden.str()) << "WEIR_WRITE_GOLDEN=1 writes it anew; look at the difference";
}

}  // namespace
}  // namespace weir::fabric
