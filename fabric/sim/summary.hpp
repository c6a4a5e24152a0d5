// A summary of a run: the numbers that people ask for first. It is computed from a Simulation and outlives
// it, so that a sweep keeps one line per run and not the runs.
#pragma once

#include <string>
#include <vector>

#include "fabric/sim/simulation.hpp"
#include "fabric/topology/network.hpp"

namespace weir::fabric::sim {

struct Percentiles {
  double p50 = 0, p95 = 0, p99 = 0, most = 0;
};
// Sorts the list in place; uses the nearest rank.
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
  Percentiles slowdown;  // completion time divided by that of the same flow alone on its path
  double last_arrival_us = 0;
  double goodput_gbps = 0;                // of all hosts, until the last arrival or the end
  std::uint64_t buffer_most_bytes = 0;    // shared part, in the fullest switch
  std::uint64_t headroom_most_bytes = 0;  // in the priority group that used most
  std::uint64_t queue_most_bytes = 0;
  double paused_us = 0;  // summed over all queues
  Totals totals;
  std::uint64_t deadlocks = 0, storms = 0;
};

Summary summarize(const Simulation& simulation, bool partial);
std::vector<SizeBin> slowdown_by_size(const Simulation& simulation);

struct RunTitle {
  std::string name;
  std::string file;
  std::vector<std::pair<std::string, std::string>> settings;  // the changed settings, for readers of a report
  std::vector<std::string> workloads;
  const Network* network = nullptr;  // source of the simulated Fabric; null: no map in the report
  std::string ports_file;            // what was written beside the report with all ports; empty: nothing
  std::string program = "weir sim";  // that made the report
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
