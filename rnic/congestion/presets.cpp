#include "rnic/congestion/presets.hpp"

namespace weir::rnic::congestion {
namespace {

constexpr DcqcnParameters paper{};

constexpr DcqcnParameters ns3{.increase_interval = 60'000, .increase_bytes = 300'000'000};

constexpr DcqcnParameters connectx{.g = 5.0 / 1024,
                                   .initial_alpha = 1023.0 / 1024,
                                   .additive_increase = 5e6,
                                   .hyper_increase = 50e6,
                                   .minimum_rate = 1e6,
                                   .alpha_interval = 1'000,
                                   .increase_interval = 300'000,
                                   .decrease_interval = 4'000,
                                   .notification_interval = 4'000,
                                   .increase_bytes = 32767 * 64,
                                   .fast_recovery_steps = 1,
                                   .lower_target_always = false};

// Rates for 25 Gb/s. The HPCC simulator's receiver echoes every mark, and the sender's
// decrease_interval paces. It has no byte counter. Its minimum rate is 1 Gb/s at every speed, which
// leaves no room on 10G, so it is scaled here too.
constexpr DcqcnParameters hpcc{.additive_increase = 5e6,
                               .hyper_increase = 50e6,
                               .minimum_rate = 100e6,
                               .reference_rate = 25e9,
                               .alpha_interval = 1'000,
                               .increase_interval = 300'000,
                               .decrease_interval = 4'000,
                               .notification_interval = 4'000,
                               .increase_bytes = 0,
                               .fast_recovery_steps = 1,
                               .lower_target_always = false};

// As hpcc, with the intervals of the paper.
constexpr DcqcnParameters hpcc_paper{.additive_increase = 5e6,
                                     .hyper_increase = 50e6,
                                     .minimum_rate = 100e6,
                                     .reference_rate = 25e9,
                                     .alpha_interval = 50'000,
                                     .increase_interval = 55'000,
                                     .decrease_interval = 50'000,
                                     .notification_interval = 4'000,
                                     .increase_bytes = 0,
                                     .fast_recovery_steps = 1,
                                     .lower_target_always = false};

constexpr DcqcnPreset presets[] = {
    {"paper", "the parameters of the paper", paper},
    {"ns3", "the configuration of the authors' simulator", ns3},
    {"connectx", "the defaults of ConnectX NICs", connectx},
    {"hpcc", "\"dcqcn\" of HPCC's scripts, scaled with the line", hpcc},
    {"hpcc-paper", "\"dcqcn_paper\" of HPCC's scripts, scaled with the line", hpcc_paper},
};

}  // namespace

std::span<const DcqcnPreset> dcqcn_presets() { return presets; }

}  // namespace weir::rnic::congestion
