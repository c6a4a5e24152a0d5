// A plan as text: for people in a terminal, for programs, for a browser.
#pragma once

#include <string>

#include "fabric/plan/plan_network.hpp"

namespace weir::fabric {

std::string table_report(const Plan& plan);
std::string json_report(const Plan& plan);
// A single file that refers to no other; its pictures are inline SVG.
std::string html_report(const Plan& plan);

// "leaf1 ... leaf64 (64 switches, sn3420, 56 ports each)"
std::string title_of(const SwitchPlan& kind, const Network& network);
// "net.toml:3:1: warning: ...", or without the place if there is none
std::string text(const Finding& finding);
// "100G", "2.5G"
std::string speed_text(std::uint64_t bps);
// "40 m fibre", "40 m out, 60 m back fibre"
std::string cable_text(const Cable& cable);

}  // namespace weir::fabric
