// What a switch that runs SONiC is told: the tables of config_db.json that carry buffers, QoS and the PFC
// watchdog.
//
// Values keep to the ranges of SONiC's YANG models (sonic-buffer-*, sonic-wred-profile, sonic-cable-length,
// sonic-port-qos-map, sonic-pfcwd). The file holds only these tables: load it beside the switch's own
// configuration.
#pragma once

#include <string>

#include "fabric/plan/plan_network.hpp"

namespace weir::fabric {

// Asserts that the switch's buffer fits. `at` is one of kind.switches.
std::string sonic_config(const Plan& plan, const SwitchPlan& kind, NodeId at);

}  // namespace weir::fabric
