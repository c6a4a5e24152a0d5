// What a run amounts to: the numbers that a person asks for first. Computed from a Simulation, kept when it
// is gone, so that a sweep keeps a line of each run and not the runs.
#pragma once

#include <string>
#include <vector>

#include "fabric/sim/simulation.hpp"
#include "fabric/topology/network.hpp"

namespace weir::fabric::sim {

struct Percentiles {
  double p50 = 0, p95 = 0, p99 = 0, most = 0;
};
// Of a list that is sorted in place; the nearest rank.
Percentiles percentiles(std::vector<double>& values);

struct SizeBin {
  double bytes_from, bytes_to;
  std::uint64_t flows;
  Percentiles slowdown;
};

struct Summary {
  bool partial = false;  // interrupted before its end
  double simulated_us = 0;
  std::uint64_t flows = 0, finished = 0;
  Percentiles completion_us;
  Percentiles slowdown;  // completion time by that of the same flow alone on its path
  double last_arrival_us = 0;
  double goodput_gbps = 0;                // all hosts together, until the last arrival or the end
  std::uint64_t buffer_most_bytes = 0;    // shared part of the fullest switch
  std::uint64_t headroom_most_bytes = 0;  // of the priority group that used most
  std::uint64_t queue_most_bytes = 0;
  double paused_us = 0;  // all queues together
  Totals totals;
  std::uint64_t deadlocks = 0, storms = 0;
};

Summary summarize(const Simulation& simulation, bool partial);
std::vector<SizeBin> slowdown_by_size(const Simulation& simulation);

struct RunTitle {
  std::string name;
  std::string file;
  std::vector<std::pair<std::string, std::string>> settings;  // what was turned, for the reader of a report
  std::vector<std::string> workloads;
  const Network* network = nullptr;  // what the simulated Fabric was made of; null: no map in the report
};

// The texts of the result files. Equal runs give equal bytes.
std::string summary_json(const Simulation& simulation, const Summary& summary, const RunTitle& title);
std::string flows_csv(const Simulation& simulation);
std::string ports_csv(const Simulation& simulation);
std::string totals_csv(const Simulation& simulation);
std::string switches_csv(const Simulation& simulation);
std::string queues_csv(const Simulation& simulation);
std::string html_report(const Simulation& simulation, const Summary& summary, const RunTitle& title);

std::string describe(const Incident& incident, const Fabric& fabric);
std::string port_name(const Fabric& fabric, std::uint32_t port);  // "leaf0:Ethernet4"

// "16.87 Gb/s", "225.4 Tb/s".
std::string rate_text(double gbps);

}  // namespace weir::fabric::sim
