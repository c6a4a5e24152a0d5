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

constexpr DcqcnPreset presets[] = {
    {"paper", "the parameters of the paper", paper},
    {"ns3", "the configuration of the authors' simulator", ns3},
    {"connectx", "the defaults of ConnectX NICs", connectx},
};

}  // namespace

std::span<const DcqcnPreset> dcqcn_presets() { return presets; }

}  // namespace weir::rnic::congestion
