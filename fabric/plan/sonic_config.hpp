// The configuration of a SONiC switch: the tables of config_db.json for buffers, QoS
// and the PFC watchdog.
//
// Values stay within the ranges of SONiC's YANG models (sonic-buffer-*, sonic-wred-profile,
// sonic-cable-length, sonic-port-qos-map, sonic-pfcwd). The file holds only these tables; load it in addition
// to the switch's own configuration.
#pragma once

#include <string>

#include "fabric/plan/plan_network.hpp"

namespace weir::fabric {

// Asserts that the buffer of the switch fits. `at` is one of kind.switches.
std::string sonic_config(const Plan& plan, const SwitchPlan& kind, NodeId at);

// What to check on such a switch before the file is trusted; "": nothing.
std::string sonic_remark(const SwitchPlan& kind);

}  // namespace weir::fabric
