// One run of a scenario, from its file to what came out.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "twin/coordinator.hpp"

namespace weir::twin {

struct PortSums {
  std::string node, port;
  std::uint64_t packets = 0, bytes = 0, marked = 0, dropped = 0;
  std::uint64_t pauses_received = 0;
  Ticks paused = 0;
};

// The switch or host at the other end paused that port.
struct PauseSums {
  std::string paused, by;
  std::uint8_t priority = 0;
  std::uint64_t frames = 0;
  Ticks time = 0;
};

struct Outcome {
  RunResult run;
  std::vector<std::string> outputs;  // by program
  LiveCounts packets;
  std::uint64_t pfc_frames = 0;
  std::vector<PortSums> ports;  // that sent anything
  std::vector<PauseSums> pauses;
  std::vector<std::string> incidents;  // links that failed, deadlocks
  std::string report;                  // a page with pictures, as weir sim draws them
  // Of every packet at every host's port, with its time: equal if all of them were equal.
  std::uint64_t fingerprint = 0;
};

struct RunOptions {
  std::string weir;  // the program `weir`
  std::uint64_t seed = 1;
  std::string captures;  // folder for the packets of every port; empty: none
  bool report = false;   // makes Outcome::report
  // Where the run stops once, and what is called then with a line for each thread (Coordinator::stop_at).
  Ticks stop_at = link::fabric::no_time;
  std::function<void(const std::string&)> stopped = {};
};

std::expected<Outcome, std::string> run_once(const Scenario& scenario, const RunOptions& options);

// What two runs differ in first; empty: nothing.
std::string first_difference(const Scenario& scenario, const Outcome& first, const Outcome& second);

// What went wrong in the run, in a line; empty: all programs ended with status 0.
std::string failure_of(const Scenario& scenario, const Outcome& outcome);

std::string summary(const Scenario& scenario, const Outcome& outcome);

}  // namespace weir::twin
