// Planned headroom against every row of SONiC's own tables for the switches that we know (pg_profiles.ini).
#include "fabric/plan/published_headroom.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "fabric/plan/plan_network.hpp"
#include "fabric/topology/read_network.hpp"

namespace weir::fabric {
namespace {

struct Row {
  std::string model, table, sku;
  std::uint64_t mbps = 0;
  double cable_m = 0;
  std::uint64_t xoff = 0;

  std::string name() const { return fmt::format("{} {} {} {}m", model, sku, mbps, cable_m); }
};

std::vector<Row> published_rows() {
  std::ifstream file(PROFILES_FILE);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    Row row;
    std::istringstream(line) >> row.model >> row.table >> row.sku >> row.mbps >> row.cable_m >> row.xoff;
    rows.push_back(row);
  }
  return rows;
}

std::uint64_t planned_xoff(const Row& row, const std::string& plan) {
  const auto link = [&](int host) {
    return fmt::format(
        "[[host]]\nname = \"h{0}\"\n[[link]]\nbetween = [\"h{0}\", \"s\"]\nspeed = \"{1}G\"\ncable = "
        "\"{2}m\"\n",
        host, static_cast<double>(row.mbps) / 1000, row.cable_m);
  };
  const auto text =
      plan + fmt::format("[[switch]]\nname = \"s\"\nmodel = \"{}\"\n", row.model) + link(1) + link(2);
  Complaints complaints;
  const auto network =
      read_network(text, "net.toml", [](const std::string&) { return std::nullopt; }, complaints);
  EXPECT_TRUE(network) << complaints.text();
  if (!network) return 0;
  return plan_network(*network, {FailureScope::none}).switches.front().ports.front().xoff;
}

// Rows that a plan does not reach, each with its reason.
const std::map<std::string, std::string> misses = {};

TEST(PublishedHeadroom, is_a_floor_of_every_plan) {
  const auto rows = published_rows();
  ASSERT_EQ(rows.size(), 759u);
  std::map<std::string, std::size_t> reached;
  for (const auto& row : rows) {
    const bool enough = planned_xoff(row, "") >= row.xoff;
    EXPECT_EQ(enough, !misses.contains(row.name()))
        << row.name() << ": " << row.xoff << ", planned " << planned_xoff(row, "");
    reached[row.model] += enough;
  }
  EXPECT_EQ(reached["7060x6_64pe"], 7u);
  EXPECT_EQ(reached["z9664f"], 21u);
  EXPECT_EQ(reached["7800r3_48cq2_lc"], 15u);
  EXPECT_EQ(reached["7280r4_64o"], 24u);
}

TEST(PublishedHeadroom, is_what_sonic_takes_by_its_tables) {
  for (const auto& row : published_rows())
    if (row.table == "own")
      EXPECT_EQ(planned_xoff(row, "[plan]\nheadroom = \"sonic\"\nsonic_release = \"tables\"\n"), row.xoff)
          << row.name();
}

TEST(PublishedHeadroom, is_found_by_speed_and_cable) {
  constexpr std::uint64_t gbps = 1'000'000'000;
  const HeadroomRow table[] = {
      {100 * gbps, 5, 1000}, {100 * gbps, 40, 8000}, {400 * gbps, 5, 4000}, {400 * gbps, 40, 32000}};
  struct Case {
    std::uint64_t speed_gbps;
    double cable_m;
    std::optional<std::uint64_t> xoff;
  };
  const Case cases[] = {{100, 5, 1000}, {100, 40, 8000},  {100, 3, 1000},        {100, 10, 2000},
                        {25, 40, 8000}, {200, 40, 32000}, {800, 5, std::nullopt}};
  for (const auto& row : cases) {
    SonicHeadroomInput port;
    port.speed_bps = row.speed_gbps * gbps;
    port.cable_m = row.cable_m;
    EXPECT_EQ(published_xoff(table, port), row.xoff) << row.speed_gbps << ' ' << row.cable_m;
  }
}

// 260 m more at 100G, out and back at 1.98e8 m/s: 32.8 kB.
TEST(PublishedHeadroom, grows_with_the_formula_beyond_the_table) {
  const HeadroomRow table[] = {{100'000'000'000, 40, 8000}};
  SonicHeadroomInput port;
  port.speed_bps = table[0].speed_bps;
  port.cable_m = 300;
  const auto xoff = published_xoff(table, port);
  ASSERT_TRUE(xoff);
  EXPECT_NEAR(static_cast<double>(*xoff), 8000 + 2 * 260 / 1.98e8 * 100e9 / 8, 1100);
}

TEST(SwitchModel, refuses_rows_of_headroom_that_do_not_match) {
  const std::pair<const char*, const char*> rows[] = {
      {"{ speed = \"100G\", cables = [\"5m\"], xoff = [1, 2] }", "need a speed, cables and an xoff"},
      {"{ cables = [\"5m\"], xoff = [1] }", "need a speed, cables and an xoff"},
      {"{ speed = \"100G\", cables = [\"5 feet\"], xoff = [1] }", "'5 feet' is no length"},
      {"{ speed = \"100G\", cables = [\"5m\", \"5m\"], xoff = [1, 2] }", "not longer than the one before"}};
  for (const auto& [row, what] : rows) {
    Complaints complaints;
    const auto text = fmt::format(
        "[[switch_model]]\nname = \"m\"\nbuffer = \"16MiB\"\ncell = 208\nsonic_headroom = [{}]\n", row);
    read_network(text, "net.toml", [](const std::string&) { return std::nullopt; }, complaints);
    EXPECT_NE(complaints.text().find(what), std::string::npos) << row << ": " << complaints.text();
  }
}

}  // namespace
}  // namespace weir::fabric
