// Published parameter sets of DCQCN, as data.
#pragma once

#include <span>
#include <string_view>

#include "rnic/congestion/dcqcn.hpp"

namespace weir::rnic::congestion {

struct DcqcnPreset {
  std::string_view name;
  std::string_view what;
  DcqcnParameters parameters;  // times in ns
};

// "paper": SIGCOMM 2015; "ns3": the configuration of the authors' simulator; "connectx": a NIC vendor's
// defaults (min_time_between_cnps 4, dce_tcp_g 1019, dce_tcp_rtt 1, rpg_time_reset 300, rpg_threshold 1,
// rpg_ai_rate 5, rpg_hai_rate 50, rpg_min_dec_fac 50, rpg_min_rate 1, rate_reduce_monitor_period 4,
// rpg_byte_reset 32767 of 64 bytes).
std::span<const DcqcnPreset> dcqcn_presets();

}  // namespace weir::rnic::congestion
