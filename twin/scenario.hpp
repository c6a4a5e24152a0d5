// A scenario with real programs: a scenario of weir sim (fabric/sim/scenario.hpp), [[program]]s on its hosts,
// and what their NICs cost ([nic]). weir-fabric(1) describes the keys; this reader defines them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabric/sim/scenario.hpp"

namespace weir::twin {

using fabric::sim::Ticks;

struct Program {
  std::string name;
  std::string host;
  std::uint32_t address = 0;  // of the host, as fabric/sim numbers it
  std::vector<std::string> command;
  Ticks start = 0;
};

// What a packet costs in the NIC, both ends, besides the wire.
struct NicCosts {
  Ticks transmit = 0;      // from the post to the port's queue
  Ticks receive = 0;       // from the last bit's arrival until the program can see it
  bool holds_back = true;  // packets may lie in its inbox while nobody can notice them (delivery_rule.hpp)
};

// Of the packets that arrive at that host's port, or leave it, in that time: a part of them is lost.
struct Loss {
  std::uint32_t host = 0;
  Ticks from = 0, until = 0;
  double rate = 1;
};

struct Scenario {
  fabric::sim::Scenario network;
  std::vector<Program> programs;
  std::vector<Loss> losses;
  NicCosts nic;
  Ticks tcp_latency = 0;
};

// nullopt, with at least one complaint, if anything is wrong.
std::optional<Scenario> load_scenario(const std::string& path, fabric::Complaints& complaints);

}  // namespace weir::twin
