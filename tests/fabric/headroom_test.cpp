// Headroom, thresholds and marks against published figures and closed forms.
#include "fabric/plan/headroom.hpp"

#include <gtest/gtest.h>

#include "fabric/plan/marking.hpp"
#include "fabric/plan/threshold.hpp"

namespace weir::fabric {
namespace {

constexpr std::uint64_t gbps = 1'000'000'000;

struct ProfileRow {
  const char* name;
  double cell;
  std::uint64_t speed_bps;
  double cable_m;
  std::uint64_t size, xon, xoff;
  bool eight_lanes = false;
};

// pg_profile_lookup.ini as published for two switches.
const ProfileRow profile_rows[] = {
    {"msn2700_100g_5m", 96, 100 * gbps, 5, 50176, 19456, 30720},
    {"msn2700_100g_40m", 96, 100 * gbps, 40, 58368, 19456, 38912},
    {"msn2700_100g_300m", 96, 100 * gbps, 300, 123904, 19456, 104448},
    {"msn2700_25g_5m", 96, 25 * gbps, 5, 49152, 19456, 29696},
    {"msn2700_25g_40m", 96, 25 * gbps, 40, 51200, 19456, 31744},
    {"msn2700_25g_300m", 96, 25 * gbps, 300, 67584, 19456, 48128},
    {"sn3700_100g_5m", 144, 100 * gbps, 5, 53248, 19456, 33792},
    {"sn3700_100g_40m", 144, 100 * gbps, 40, 63488, 19456, 44032},
    {"sn3700_100g_300m", 144, 100 * gbps, 300, 137216, 19456, 117760},
    {"sn4700_200g_40m", 144, 200 * gbps, 40, 74752, 19456, 55296},
    {"sn4700_400g_5m", 144, 400 * gbps, 5, 86016, 37888, 38912, true},
    {"sn4700_400g_300m", 144, 400 * gbps, 300, 420864, 37888, 373760, true},
};

class PublishedProfile : public testing::TestWithParam<ProfileRow> {};

TEST_P(PublishedProfile, is_reproduced_exactly) {
  const auto& row = GetParam();
  SonicHeadroomInput in;
  in.speed_bps = row.speed_bps;
  in.cable_m = row.cable_m;
  in.cell_bytes = row.cell;
  in.pipeline_bytes = 19 * 1024;
  in.mac_phy_bytes = 0.8 * 1024;
  in.peer_response_bytes = 3.8 * 1024;
  in.formula = sonic_formula("tables");
  in.eight_lanes = row.eight_lanes;
  const auto profile = sonic_headroom(in);
  EXPECT_EQ(profile.size, row.size);
  EXPECT_EQ(profile.xon, row.xon);
  EXPECT_EQ(profile.xoff, row.xoff);
}
INSTANTIATE_TEST_SUITE_P(all, PublishedProfile, testing::ValuesIn(profile_rows),
                         [](const auto& row) { return std::string(row.param.name); });

struct ReleaseRow {
  const char* release;
  double cell, tile;
  std::uint64_t speed_gbps;
  double cable_m, small_percentage;
  bool eight_lanes, shared;
  std::uint64_t xon, xoff, size;  // 0: the profile's size is xon, because its headroom is shared
};

// The output of each release's buffer_headroom_mellanox.lua, run in a Lua interpreter.
TEST(SonicHeadroom, is_that_of_the_release) {
  const ReleaseRow rows[] = {
      {"202012", 96, 0, 100, 40, 100, false, false, 19456, 38912, 58368},
      {"202106", 144, 0, 100, 300, 100, false, false, 19456, 115712, 135168},
      {"202012", 144, 0, 400, 40, 100, true, false, 37888, 76800, 123904},
      {"202012", 144, 0, 400, 40, 50, true, false, 37888, 56320, 103424},
      {"202111", 96, 0, 100, 40, 100, false, false, 19456, 80896, 100352},
      {"202111", 144, 0, 400, 40, 100, true, false, 37888, 198656, 245760},
      {"202205", 192, 15, 800, 40, 100, true, false, 37888, 161792, 208896},
      {"202311", 144, 0, 25, 5, 100, false, false, 19456, 35840, 55296},
      {"202311", 144, 0, 400, 40, 50, true, false, 37888, 144384, 191488},
      {"202211", 192, 15, 800, 40, 100, true, false, 37888, 323584, 370688},
      {"202405", 96, 0, 100, 40, 100, false, false, 19456, 81920, 101376},
      {"202411", 144, 0, 25, 5, 100, false, false, 19456, 47104, 66560},
      {"202505", 144, 0, 100, 300, 100, false, false, 19456, 221184, 240640},
      {"202511", 144, 0, 400, 40, 100, true, false, 38912, 266240, 314368},
      {"202511", 144, 0, 400, 40, 50, true, false, 38912, 110592, 158720},
      {"202511", 144, 0, 100, 40, 90, false, false, 19456, 73728, 93184},
      {"202605", 144, 0, 400, 40, 50, true, false, 38912, 112640, 160768},
      {"202605", 144, 0, 100, 40, 90, false, false, 19456, 75776, 95232},
      {"202605", 192, 15, 400, 40, 100, false, false, 19456, 283648, 303104},
      {"202605", 192, 15, 800, 40, 100, true, false, 38912, 362496, 410624},
      {"202605", 192, 15, 100, 300, 100, false, true, 19456, 225280, 0},
  };
  for (const auto& row : rows) {
    SonicHeadroomInput in;
    in.formula = sonic_formula(row.release);
    ASSERT_TRUE(in.formula) << row.release;
    in.speed_bps = row.speed_gbps * gbps;
    in.cable_m = row.cable_m;
    in.cell_bytes = row.cell;
    in.tile_bytes_per_gbps = row.tile;
    in.small_packet_percentage = row.small_percentage;
    in.eight_lanes = row.eight_lanes;
    in.shared_pool = row.shared;
    in.pipeline_bytes = 19 * 1024;
    in.mac_phy_bytes = 0.8 * 1024;
    in.peer_response_bytes = 3.8 * 1024;
    const auto profile = sonic_headroom(in);
    EXPECT_EQ(profile.xon, row.xon) << row.release << ' ' << row.speed_gbps;
    EXPECT_EQ(profile.xoff, row.xoff) << row.release << ' ' << row.speed_gbps;
    if (row.size) {
      EXPECT_EQ(profile.size, row.size) << row.release << ' ' << row.speed_gbps;
    }
  }
  EXPECT_FALSE(sonic_formula("201911"));
  for (const auto release : sonic_releases()) EXPECT_TRUE(sonic_formula(release)) << release;
}

TEST(SonicHeadroom, cells_are_wasted_by_small_packets_only) {
  SonicHeadroomInput in;
  in.formula = sonic_formula("202311");
  in.speed_bps = 100 * gbps;
  in.cell_bytes = 96;
  EXPECT_NEAR(sonic_headroom(in).cell_waste, 1.979, 0.0005);
  in.cell_bytes = 144;
  EXPECT_DOUBLE_EQ(sonic_headroom(in).cell_waste, 2.25);
  in.small_packet_percentage = 0;
  EXPECT_DOUBLE_EQ(sonic_headroom(in).cell_waste, 1);
}

TEST(SonicHeadroom, more_small_packets_never_need_less) {
  SonicHeadroomInput in;
  in.speed_bps = 100 * gbps;
  in.cell_bytes = 144;
  std::uint64_t before = 0;
  for (in.small_packet_percentage = 0; in.small_packet_percentage <= 100; in.small_packet_percentage += 5) {
    const auto xoff = sonic_headroom(in).xoff;
    EXPECT_GE(xoff, before) << in.small_packet_percentage;
    before = xoff;
  }
}

TEST(SonicHeadroom, every_term_counts) {
  SonicHeadroomInput base;
  base.speed_bps = 400 * gbps;
  base.cable_m = 100;
  const auto xoff = sonic_headroom(base).xoff;
  const std::pair<const char*, void (*)(SonicHeadroomInput&)> changes[] = {
      {"cable", [](SonicHeadroomInput& in) { in.cable_m += 10; }},
      {"port mtu", [](SonicHeadroomInput& in) { in.port_mtu_bytes += 2048; }},
      {"lossless mtu", [](SonicHeadroomInput& in) { in.lossless_mtu_bytes += 2048; }},
      {"gearbox", [](SonicHeadroomInput& in) { in.gearbox_ns = 30; }},
      {"macsec", [](SonicHeadroomInput& in) { in.macsec_ns = 30; }},
      {"mac and phy", [](SonicHeadroomInput& in) { in.mac_phy_bytes = 2048; }},
      {"tiles", [](SonicHeadroomInput& in) { in.tile_bytes_per_gbps = 15; }},
  };
  for (const auto& [name, change] : changes) {
    auto in = base;
    change(in);
    EXPECT_GT(sonic_headroom(in).xoff, xoff) << name;
  }
}

TEST(PauseResponse, is_that_of_802_3) {
  const std::pair<std::uint64_t, std::uint32_t> rows[] = {{10, 67},   {25, 80},   {40, 118},  {50, 147},
                                                          {100, 394}, {200, 453}, {400, 905}, {800, 905}};
  for (const auto& [speed, quanta] : rows) EXPECT_EQ(pause_response_quanta(speed * gbps), quanta) << speed;
}

TEST(FirstPrinciples, hundred_metres_at_100g_in_64_byte_packets_is_408_cells) {
  FirstPrinciplesInput in;
  in.speed_bps = 100 * gbps;
  in.cable_out_ns = in.cable_back_ns = 100 * 5;
  in.pfc_generation_ns = 500;
  in.peer_stop_ns = 500;
  in.blocking_frame_bytes = 9216;
  in.cell_bytes = 256;
  in.largest_packet_bytes = 64;
  const auto needed = first_principles(in);
  EXPECT_NEAR(needed.ns, 2738.88, 0.005);
  EXPECT_NEAR(needed.cells_exact, 407.57, 0.005);
  EXPECT_EQ(needed.cells, 408u);
  EXPECT_EQ(needed.bytes, 408u * 256);
}

TEST(FirstPrinciples, worst_packet_is_the_smallest_or_one_byte_into_another_cell) {
  EXPECT_EQ(worst_packet(64, 9216, 208), 64u);    // 1 cell in 84 bytes of time
  EXPECT_EQ(worst_packet(200, 9216, 208), 209u);  // 2 in 229 rather than 1 in 220
  EXPECT_EQ(worst_packet(200, 205, 208), 200u);
  // Compare with trying all sizes.
  for (const std::uint32_t cell : {1u, 16u, 20u, 22u, 80u, 96u, 144u, 208u, 256u})
    for (std::uint32_t smallest = 64; smallest < 1200; smallest += 37) {
      const auto rate = [cell](std::uint32_t packet) {
        return double((packet + cell - 1) / cell) / (packet + 20);
      };
      double best = 0;
      for (std::uint32_t packet = smallest; packet <= 9216; ++packet) best = std::max(best, rate(packet));
      EXPECT_DOUBLE_EQ(rate(worst_packet(smallest, 9216, cell)), best) << cell << ' ' << smallest;
    }
}

TEST(ZeroLossEdge, is_whole_frames_in_flight_and_the_one_that_crossed) {
  // 100G, a link of 500 ns, frames of 1048 bytes; the PFC frame and an ACK that it waits for.
  EXPECT_EQ(zero_loss_headroom(1048, 100 * gbps, 500, 84 + 84), 14672u);
  EXPECT_EQ(zero_loss_headroom(1048, 100 * gbps, 500, 76), 14672u);
  EXPECT_EQ(zero_loss_headroom(1048, 100 * gbps, 500, 75), 13624u);
}

TEST(DynamicThreshold, eleven_steps_give_their_shares) {
  const double shares[] = {0.78, 1.54, 3.03, 5.88, 11.1, 20, 33.3, 50, 66.7, 80, 88.9};
  static_assert(std::size(shares) == alpha_steps);
  for (int step = 0; step < alpha_steps; ++step)
    EXPECT_NEAR(100 * share_of_each(alpha_of(least_dynamic_th + step), 1), shares[step],
                shares[step] < 10 ? 0.005 : 0.05);
  EXPECT_EQ(alpha_of(least_dynamic_th), 1.0 / 128);
  EXPECT_EQ(alpha_of(most_dynamic_th), 8);
}

TEST(DynamicThreshold, two_queues_at_alpha_1_share_a_buffer_of_4_MB_by_thirds) {
  EXPECT_EQ(limit_of_each(4092016, 1, 2), 1364005u);
}

TEST(DynamicThreshold, queues_and_the_free_rest_make_the_whole_pool) {
  for (int th = least_dynamic_th; th <= most_dynamic_th; ++th)
    for (const double n : {1.0, 2.0, 7.0, 64.0})
      EXPECT_NEAR(n * share_of_each(alpha_of(th), n) + share_free(alpha_of(th), n), 1, 1e-12);
}

TEST(DynamicThreshold, chosen_step_is_the_largest_that_leaves_enough_free) {
  EXPECT_EQ(choose_dynamic_th(1, 0.1), 3);    // 1/9 free
  EXPECT_EQ(choose_dynamic_th(8, 0.1), 0);    // alpha 1: 1/9; alpha 2: 1/17
  EXPECT_EQ(choose_dynamic_th(64, 0.1), -3);  // alpha 1/8: 1/9
  EXPECT_EQ(choose_dynamic_th(1000, 0.9), least_dynamic_th);
}

TEST(Marking, probability_rises_from_kmin_to_kmax_and_is_certain_above) {
  const std::pair<double, double> rows[] = {{0, 0},          {99e3, 0},  {100e3, 0}, {250e3, 0.1},
                                            {399e3, 0.1993}, {400e3, 1}, {1e9, 1}};
  for (const auto& [queue, probability] : rows)
    EXPECT_NEAR(mark_probability(queue, 100e3, 400e3, 0.2), probability, 1e-4) << queue;
}

TEST(Marking, usual_marks_stay_where_the_limit_allows_them) {
  const auto marks = place_marks({.speed_bps = 25 * gbps, .xoff_limit_bytes = 2'000'000, .cell_bytes = 1});
  EXPECT_EQ(marks.kmin_bytes, 100'000u);
  EXPECT_EQ(marks.kmax_bytes, 400'000u);
  EXPECT_TRUE(marks.before_pfc);
  EXPECT_DOUBLE_EQ(marks.pmax, 0.2);
}

TEST(Marking, marks_move_below_a_low_limit_in_whole_cells) {
  for (const std::uint64_t limit : {50'000u, 123'456u, 399'999u})
    for (const std::uint32_t spread : {1u, 3u}) {
      const auto marks = place_marks(
          {.speed_bps = 100 * gbps, .xoff_limit_bytes = limit, .spread = spread, .cell_bytes = 208});
      EXPECT_LE(marks.kmax_bytes, limit / spread);
      EXPECT_LT(marks.kmin_bytes, marks.kmax_bytes);
      EXPECT_EQ(marks.kmax_bytes % 208, 0u);
      EXPECT_TRUE(marks.before_pfc);
    }
}

TEST(Marking, users_marks_are_kept_and_judged) {
  const auto marks = place_marks(
      {.speed_bps = 100 * gbps, .xoff_limit_bytes = 100'000, .cell_bytes = 1, .kmax_bytes = 200'000});
  EXPECT_EQ(marks.kmax_bytes, 200'000u);
  EXPECT_FALSE(marks.before_pfc);
  EXPECT_NE(marks.inequality.find("200,000 > XOFF limit 100,000"), std::string::npos) << marks.inequality;
}

}  // namespace
}  // namespace weir::fabric
