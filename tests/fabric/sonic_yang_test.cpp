// A switch's configuration, checked against the rules of SONiC's YANG models (sonic-buildimage,
// src/sonic-yang-models/yang-models/sonic-*.yang). The rules are here as data: the tables, their keys, the
// type and range of each field, the mandatory fields, and the references between tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "fabric/plan/plan_network.hpp"
#include "fabric/plan/sonic_config.hpp"
#include "fabric/topology/read_network.hpp"

namespace weir::fabric {
namespace {

using nlohmann::json;

constexpr const char* any_name = "[a-zA-Z0-9][-a-zA-Z0-9_]{0,31}";
constexpr const char* any_number = "[0-9]+";
constexpr const char* boolean = "true|false";
constexpr const char* class_list = "([0-7](,[0-7])*)?";
constexpr const char* colored_ecn =
    "ecn_none|ecn_green|ecn_yellow|ecn_red|ecn_green_yellow|ecn_green_red|ecn_yellow_red|ecn_all";

struct FieldRule {
  const char* name;            // "": every field, because the field's name is data, too, and must match `key`
  const char* pattern;         // for the value, or for each comma-separated part if it refers to a table
  double least = 0, most = 0;  // for numbers, if most > least
  const char* refers = nullptr;  // the table that it refers to
  bool mandatory = false;
  const char* key = nullptr;
};

struct TableRule {
  const char* name;
  const char* key;  // pattern of an entry's key; a port's name stands for itself
  bool of_ports;    // the key begins with the name of a port of the switch
  std::vector<FieldRule> fields;
};

const std::vector<TableRule>& rules() {
  static const std::vector<TableRule> all = {
      {"BUFFER_POOL",
       ".+",
       false,
       {{"type", "ingress|egress|both", 0, 0, nullptr, true},
        {"mode", "static|dynamic", 0, 0, nullptr, true},
        {"size", any_number},
        {"xoff", any_number}}},
      {"BUFFER_PROFILE",
       ".+",
       false,
       {{"pool", ".+", 0, 0, "BUFFER_POOL", true},
        {"size", any_number, 0, 0, nullptr, true},
        {"dynamic_th", "-?[0-9]+", -8, 7},
        {"static_th", any_number},
        {"xon", any_number},
        {"xoff", any_number},
        {"xon_offset", any_number}}},
      {"BUFFER_PG", "[0-7](-[0-7])?", true, {{"profile", ".+", 0, 0, "BUFFER_PROFILE"}}},
      {"BUFFER_QUEUE", "(1[0-5]|[0-9])(-(1[0-5]|[0-9]))?", true, {{"profile", ".+", 0, 0, "BUFFER_PROFILE"}}},
      {"BUFFER_PORT_INGRESS_PROFILE_LIST", "", true, {{"profile_list", ".+", 0, 0, "BUFFER_PROFILE", true}}},
      {"BUFFER_PORT_EGRESS_PROFILE_LIST", "", true, {{"profile_list", ".+", 0, 0, "BUFFER_PROFILE", true}}},
      {"CABLE_LENGTH", any_name, false, {{"", "[0-9]+m", 0, 0, nullptr, false, "Ethernet[0-9]+"}}},
      {"DSCP_TO_TC_MAP", any_name, false, {{"", "[0-7]", 0, 0, nullptr, false, "6[0-3]|[1-5][0-9]?|[0-9]"}}},
      {"TC_TO_QUEUE_MAP", any_name, false, {{"", "[0-9]", 0, 0, nullptr, false, "[0-7]"}}},
      {"TC_TO_PRIORITY_GROUP_MAP", any_name, false, {{"", "[0-7]", 0, 0, nullptr, false, "[0-7]"}}},
      {"MAP_PFC_PRIORITY_TO_QUEUE", any_name, false, {{"", "[0-7]", 0, 0, nullptr, false, "[0-7]"}}},
      {"PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", any_name, false, {{"", "[0-7]", 0, 0, nullptr, false, "[0-7]"}}},
      {"SCHEDULER", ".+", false, {{"type", "DWRR|WRR|STRICT"}, {"weight", any_number, 1, 100}}},
      {"QUEUE",
       "[0-7]",
       true,
       {{"scheduler", ".+", 0, 0, "SCHEDULER"}, {"wred_profile", ".+", 0, 0, "WRED_PROFILE"}}},
      {"WRED_PROFILE",
       any_name,
       false,
       {{"ecn", colored_ecn},
        {"wred_green_enable", boolean},
        {"wred_yellow_enable", boolean},
        {"wred_red_enable", boolean},
        {"green_min_threshold", any_number},
        {"green_max_threshold", any_number},
        {"yellow_min_threshold", any_number},
        {"yellow_max_threshold", any_number},
        {"red_min_threshold", any_number},
        {"red_max_threshold", any_number},
        {"green_drop_probability", any_number, 0, 100},
        {"yellow_drop_probability", any_number, 0, 100},
        {"red_drop_probability", any_number, 0, 100}}},
      {"PORT_QOS_MAP",
       "global",
       true,
       {{"dscp_to_tc_map", ".+", 0, 0, "DSCP_TO_TC_MAP"},
        {"tc_to_queue_map", ".+", 0, 0, "TC_TO_QUEUE_MAP"},
        {"tc_to_pg_map", ".+", 0, 0, "TC_TO_PRIORITY_GROUP_MAP"},
        {"pfc_to_queue_map", ".+", 0, 0, "MAP_PFC_PRIORITY_TO_QUEUE"},
        {"pfc_to_pg_map", ".+", 0, 0, "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"},
        {"pfc_enable", class_list},
        {"pfcwd_sw_enable", class_list}}},
      {"PFC_WD",
       "GLOBAL",
       true,
       {{"action", "drop|forward|alert"},
        {"detection_time", any_number, 100, 5000},
        {"restoration_time", any_number, 100, 60000},
        {"pfc_stat_history", "enable|disable"},
        {"POLL_INTERVAL", any_number, 100, 1000}}},
  };
  return all;
}

bool matches(const std::string& text, const char* pattern) {
  static std::map<std::string, std::regex> known;
  return std::regex_match(text, known.try_emplace(pattern, pattern).first->second);
}

std::uint64_t number(const json& entry, const std::string& field) {
  return std::stoull(entry.value(field, std::string("0")));
}

// Everything that the models would refuse, one line each.
class Judge {
 public:
  Judge(const json& config, std::vector<std::string> ports) : config_(config), ports_(std::move(ports)) {}

  std::vector<std::string> complaints() {
    for (const auto& [name, table] : config_.items()) {
      const auto rule = std::ranges::find(rules(), name, &TableRule::name);
      if (rule == rules().end())
        complain(name, "no such table");
      else
        judge(*rule, table);
    }
    musts();
    return out_;
  }

 private:
  void complain(const std::string& where, const std::string& what) { out_.push_back(where + ": " + what); }

  bool is_key(const TableRule& rule, const std::string& key) const {
    if (!rule.of_ports) return matches(key, rule.key);
    const auto bar = key.find('|');
    if (bar == std::string::npos && *rule.key && matches(key, rule.key)) return true;  // GLOBAL, global
    if (std::ranges::find(ports_, key.substr(0, bar)) == ports_.end()) return false;
    return bar == std::string::npos || matches(key.substr(bar + 1), rule.key);
  }

  void judge(const TableRule& table, const json& entries) {
    for (const auto& [key, entry] : entries.items()) {
      const auto where = std::string(table.name) + "|" + key;
      if (!is_key(table, key)) complain(where, "no such key");
      for (const auto& field : table.fields)
        if (field.mandatory && !entry.contains(field.name))
          complain(where, std::string(field.name) + " is missing");
      for (const auto& [name, value] : entry.items()) judge(table, where, name, value);
    }
  }

  void judge(const TableRule& table, const std::string& where, const std::string& name, const json& value) {
    if (!value.is_string()) return complain(where, name + " is no string");
    const auto field = std::ranges::find_if(table.fields, [&](const FieldRule& rule) {
      return *rule.name ? name == rule.name : matches(name, rule.key);
    });
    if (field == table.fields.end()) return complain(where, "no field " + name);
    const auto text = value.get<std::string>();
    if (!matches(text, field->pattern)) return complain(where, name + " = " + text);
    if (field->most > field->least)
      if (const auto n = std::stod(text); n < field->least || n > field->most)
        complain(where, name + " = " + text + " is out of range");
    if (!field->refers) return;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');)
      if (!config_.contains(field->refers) || !config_[field->refers].contains(part))
        complain(where, name + " refers to " + part + ", which is not in " + field->refers);
  }

  // The `must` of the models.
  void musts() {
    const auto marking = config_.value("WRED_PROFILE", json::object());
    for (const auto& [name, profile] : marking.items())
      for (const std::string color : {"green", "yellow", "red"})
        if (number(profile, color + "_max_threshold") < number(profile, color + "_min_threshold"))
          complain(name, color + " max threshold must be greater than or equal to min threshold");
    const auto watchdogs = config_.value("PFC_WD", json::object());
    for (const auto& [port, watchdog] : watchdogs.items()) {
      if ((port == "GLOBAL") != watchdog.contains("POLL_INTERVAL"))
        complain(port, "POLL_INTERVAL is of GLOBAL");
      if (port == "GLOBAL") continue;
      for (const std::string time : {"detection_time", "restoration_time"})
        if (number(watchdog, time) < number(watchdogs.at("GLOBAL"), "POLL_INTERVAL"))
          complain(port, time + " must be greater than or equal to POLL_INTERVAL");
    }
  }

  const json& config_;
  std::vector<std::string> ports_;
  std::vector<std::string> out_;
};

struct Judged {
  Network network;
  Plan plan;
};

std::unique_ptr<Judged> planned(const std::string& text) {
  Complaints complaints;
  auto network = read_network(text, "net.toml", [](const std::string&) { return std::nullopt; }, complaints);
  EXPECT_TRUE(network) << complaints.text();
  auto out = std::make_unique<Judged>();
  if (!network) return out;
  out->network = std::move(*network);
  out->plan = plan_network(out->network, {FailureScope::none});
  return out;
}

std::string two_tiers(const std::string& leaf, const std::string& host_speed, const std::string& spine,
                      const std::string& spine_speed, const std::string& rest = "") {
  return rest + "[leaf_spine]\nspines = 2\nleaves = 2\nhosts_per_leaf = 6\nhost_speed = \"" + host_speed +
         "\"\nhost_cable = \"3m\"\nspine_speed = \"" + spine_speed +
         "\"\nspine_cable = \"40m\"\nleaf_model = \"" + leaf + "\"\nspine_model = \"" + spine + "\"\n";
}

std::string shipped(const std::string& name) {
  std::ifstream file(NETWORKS_DIR "/" + name + ".toml");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> ports_of(const Network& network, NodeId node) {
  std::vector<std::string> names;
  for (const auto port : network[node].ports) names.push_back(network[port].name);
  return names;
}

TEST(SonicYang, accepts_what_is_written_for_every_switch) {
  const std::string networks[] = {
      shipped("reference-rig"),
      shipped("fat-tree-320"),
      two_tiers("sn3420", "25G", "sn4600c", "100G"),
      two_tiers("sn3700", "100G", "sn4700", "200G"),
      two_tiers("sn4700", "100G", "sn5600", "400G"),
      two_tiers("sn5600", "400G", "sn5600", "800G", "[scheduling]\nstrict = [6]\n"),
      two_tiers("sn5640", "200G", "sn6600_ld", "400G"),
      two_tiers("msn2700", "50G", "msn2700", "100G",
                "[lossless]\npriorities = [0, 7]\n[plan]\nsonic_release = \"202012\"\n"),
      two_tiers("z9332f", "100G", "z9664f", "400G"),
      two_tiers("7060x6_64pe", "400G", "7060x6_64pe", "800G"),
      two_tiers("7800r3_48cq2_lc", "100G", "7280r4_64o", "100G"),
      two_tiers("7060x6_64pe_b", "400G", "z9864f", "800G"),
      two_tiers("nh_4210", "400G", "7220_h6_128", "800G"),
      two_tiers("7050cx3_32s", "100G", "7260cx3_64", "100G"),
      two_tiers("s5448f", "100G", "s5448f", "400G"),
      two_tiers("sn5400", "200G", "sn5610n", "800G"),
      two_tiers("sn2201", "1G", "sn2201", "100G"),
      two_tiers("generic-32m", "100G", "research-4m", "100G", "[plan]\nwatchdog_action = \"alert\"\n"),
  };
  for (const auto& text : networks) {
    const auto judged = planned(text);
    for (const auto& kind : judged->plan.switches) {
      ASSERT_TRUE(kind.split.fits) << kind.model->name;
      const auto at = kind.switches.front();
      const auto config = json::parse(sonic_config(judged->plan, kind, at));
      EXPECT_THAT(Judge(config, ports_of(judged->network, at)).complaints(), testing::IsEmpty())
          << kind.model->name;
    }
  }
}

// Tests this checker: each rule refuses something.
TEST(SonicYang, refuses_what_sonic_would) {
  const auto judged = planned(two_tiers("sn3420", "25G", "sn4600c", "100G"));
  const auto& leaves = judged->plan.switches.back();
  const auto good = json::parse(sonic_config(judged->plan, leaves, leaves.switches.front()));
  const auto ports = ports_of(judged->network, leaves.switches.front());
  const std::pair<const char*, void (*)(json&)> changes[] = {
      {"port", [](json& c) { c["PFC_WD"]["Ethernet1"] = c["PFC_WD"]["Ethernet0"]; }},
      {"group", [](json& c) { c["BUFFER_PG"]["Ethernet0|8"] = c["BUFFER_PG"]["Ethernet0|0"]; }},
      {"field", [](json& c) { c["BUFFER_POOL"]["egress_lossy_pool"]["alpha"] = "1"; }},
      {"mandatory", [](json& c) { c["BUFFER_PROFILE"]["q_lossy_profile"].erase("size"); }},
      {"range", [](json& c) { c["BUFFER_PROFILE"]["q_lossy_profile"]["dynamic_th"] = "8"; }},
      {"reference", [](json& c) { c["QUEUE"]["Ethernet0|3"]["scheduler"] = "scheduler.9"; }},
      {"list", [](json& c) { c["BUFFER_PROFILE"].erase("ingress_lossless_profile"); }},
      {"number", [](json& c) { c["BUFFER_POOL"]["egress_lossy_pool"]["size"] = 1; }},
      {"length", [](json& c) { c["CABLE_LENGTH"]["AZURE"]["Ethernet0"] = "3.5m"; }},
      {"dscp", [](json& c) { c["DSCP_TO_TC_MAP"]["AZURE"]["64"] = "1"; }},
      {"threshold",
       [](json& c) { c["WRED_PROFILE"]["WEIR_LOSSLESS_25000"]["red_min_threshold"] = "99999999"; }},
      {"poll", [](json& c) { c["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] = "1000"; }},
  };
  EXPECT_THAT(Judge(good, ports).complaints(), testing::IsEmpty());
  for (const auto& [name, change] : changes) {
    auto bad = good;
    change(bad);
    EXPECT_THAT(Judge(bad, ports).complaints(), testing::SizeIs(testing::Ge(1u))) << name;
  }
}

// Each chip's memory and cell, from SONiC's own buffers_defaults_*.j2.
TEST(SonicConfig, pools_fit_the_chip_in_whole_cells) {
  struct Row {
    const char *model, *host_speed, *spine_speed;
    std::uint64_t memory, cell;
  };
  for (const auto& row :
       {Row{"msn2700", "50G", "100G", 13945824, 96}, Row{"sn3420", "25G", "100G", 34287552, 144},
        Row{"sn3700", "100G", "200G", 34287552, 144}, Row{"sn4600c", "100G", "100G", 60817392, 144},
        Row{"sn4700", "100G", "400G", 60817392, 144}, Row{"sn5600", "400G", "800G", 158229504, 192},
        Row{"sn5640", "200G", "400G", 136209408, 192}, Row{"sn6600_ld", "400G", "800G", 224143360, 256}}) {
    const auto judged = planned(two_tiers(row.model, row.host_speed, row.model, row.spine_speed));
    EXPECT_FALSE(judged->plan.has(Severity::fault)) << row.model;
    for (const auto& kind : judged->plan.switches) {
      const auto config = json::parse(sonic_config(judged->plan, kind, kind.switches.front()));
      const auto& pools = config["BUFFER_POOL"];
      EXPECT_EQ(number(pools["egress_lossless_pool"], "size"), row.memory) << row.model;
      const auto shared = number(pools["ingress_lossless_pool"], "size");
      EXPECT_EQ(shared % row.cell, 0u) << row.model;
      EXPECT_LT(shared + number(pools["ingress_lossless_pool"], "xoff"), row.memory) << row.model;
    }
  }
}

// buffers_defaults_t1.j2 of switches with Broadcom's chips: the ingress pool includes the headroom that all
// share.
TEST(SonicConfig, pool_includes_the_shared_headroom_where_the_chip_counts_so) {
  for (const std::string model : {"z9332f", "z9664f", "7060x6_64pe", "7800r3_48cq2_lc", "7280r4_64o"}) {
    const auto judged = planned(two_tiers(model, "100G", model, "100G"));
    EXPECT_FALSE(judged->plan.has(Severity::fault)) << model;
    const auto& kind = judged->plan.switches.front();
    const auto config = json::parse(sonic_config(judged->plan, kind, kind.switches.front()));
    const auto& pool = config["BUFFER_POOL"]["ingress_lossless_pool"];
    EXPECT_EQ(number(pool, "xoff"), kind.split.headroom) << model;
    EXPECT_EQ(number(pool, "size"), kind.split.shared + kind.split.headroom) << model;
    EXPECT_LE(number(pool, "size"), kind.model->buffer_bytes) << model;
  }
}

// The pools in buffers_defaults_t1.j2, of Jericho t2, each as type, mode.
TEST(SonicConfig, pools_are_those_of_the_platforms_template) {
  struct Row {
    const char* model;
    std::map<std::string, std::pair<std::string, std::string>> pools;
    std::uint64_t xoff;
  };
  const std::pair<std::string, std::string> in{"ingress", "dynamic"}, out{"egress", "dynamic"},
      fixed{"egress", "static"};
  for (const auto& row :
       {Row{"sn5600",
            {{"ingress_lossless_pool", in}, {"egress_lossless_pool", out}, {"egress_lossy_pool", out}},
            0},
        Row{"z9332f", {{"ingress_lossless_pool", in}, {"egress_lossless_pool", fixed}}, 27200352},
        Row{"z9664f", {{"ingress_lossless_pool", in}, {"egress_lossless_pool", fixed}}, 50653696},
        Row{"7060x6_64pe", {{"ingress_lossless_pool", in}, {"egress_lossless_pool", out}}, 29423360},
        Row{"nh_4210", {{"ingress_lossless_pool", in}, {"egress_lossless_pool", fixed}}, 81553920},
        Row{"7260cx3_64",
            {{"ingress_lossless_pool", in}, {"egress_lossless_pool", fixed}, {"egress_lossy_pool", out}},
            8965632},
        Row{"7800r3_48cq2_lc", {{"ingress_lossless_pool", {"both", "dynamic"}}}, 1056256819},
        Row{"7280r4_64o", {{"ingress_lossless_pool", {"both", "dynamic"}}}, 2863254732}}) {
    const auto judged = planned(two_tiers(row.model, "100G", row.model, "100G"));
    const auto& kind = judged->plan.switches.front();
    const auto config = json::parse(sonic_config(judged->plan, kind, kind.switches.front()));
    std::map<std::string, std::pair<std::string, std::string>> pools;
    for (const auto& [name, pool] : config["BUFFER_POOL"].items()) pools[name] = {pool["type"], pool["mode"]};
    EXPECT_EQ(pools, row.pools) << row.model;
    EXPECT_EQ(number(config["BUFFER_POOL"]["ingress_lossless_pool"], "xoff"), row.xoff) << row.model;
    EXPECT_EQ(config.contains("BUFFER_PORT_EGRESS_PROFILE_LIST"), row.xoff == 0) << row.model;
    EXPECT_EQ(sonic_remark(kind).find("includes its xoff") != std::string::npos, row.xoff != 0) << row.model;
  }
}

TEST(SonicConfig, watchdog_keeps_history_where_the_plan_says_so) {
  for (const std::string wish : {"", "enable", "disable"}) {
    const auto judged =
        planned(two_tiers("sn3420", "25G", "sn4600c", "100G",
                          wish.empty() ? "" : "[plan]\npfc_stat_history = \"" + wish + "\"\n"));
    const auto& kind = judged->plan.switches.front();
    const auto at = kind.switches.front();
    const auto config = json::parse(sonic_config(judged->plan, kind, at));
    const auto port = ports_of(judged->network, at).front();
    EXPECT_EQ(config["PFC_WD"][port].value("pfc_stat_history", ""), wish);
    EXPECT_THAT(Judge(config, ports_of(judged->network, at)).complaints(), testing::IsEmpty()) << wish;
  }
}

// files/build_templates/qos_config.j2.
TEST(SonicConfig, traffic_is_classified_as_sonic_does_unless_the_file_says_otherwise) {
  const auto judged = planned(two_tiers("sn3420", "25G", "sn4600c", "100G"));
  const auto& kind = judged->plan.switches.front();
  const auto config = json::parse(sonic_config(judged->plan, kind, kind.switches.front()));
  const std::map<int, const char*> others = {{3, "3"}, {4, "4"}, {5, "2"}, {8, "0"}, {46, "5"}, {48, "6"}};
  for (int dscp = 0; dscp < 64; ++dscp)
    EXPECT_EQ(config["DSCP_TO_TC_MAP"]["AZURE"][std::to_string(dscp)],
              others.contains(dscp) ? others.at(dscp) : "1")
        << dscp;
  const char* groups[] = {"0", "0", "0", "3", "4", "0", "0", "7"};
  for (int tc = 0; tc < 8; ++tc)
    EXPECT_EQ(config["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"][std::to_string(tc)], groups[tc]) << tc;
  EXPECT_EQ(config["PORT_QOS_MAP"]["global"]["dscp_to_tc_map"], "AZURE");
  EXPECT_EQ(config["SCHEDULER"]["scheduler.0"]["weight"], "14");
  EXPECT_EQ(config["SCHEDULER"]["scheduler.1"]["weight"], "15");
  EXPECT_EQ(config["QUEUE"]["Ethernet0|6"]["scheduler"], "scheduler.0");
}

}  // namespace
}  // namespace weir::fabric
