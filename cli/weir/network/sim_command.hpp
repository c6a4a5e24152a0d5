// What the parts of `weir sim` share: its command line, its exit statuses, and the progress line.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric/sim/scenario.hpp"
#include "fabric/sim/simulation.hpp"
#include "fabric/sim/summary.hpp"

namespace weir::command {

inline constexpr int sim_failed = 1, sim_misused = 2, sim_bad_input = 3, sim_not_written = 4,
                     sim_not_there = 5, sim_interrupted = 130;

struct SimCommand {
  std::string file, output, telemetry;
  std::vector<std::string> set, sweep, fail_on;
  unsigned jobs = 0;  // 0: one for each processor
  std::uint64_t telemetry_queue = 64u << 20;
  std::uint32_t telemetry_wait_ms = 10'000;
  bool json = false, csv = false, quiet = false, settings = false;
};

// Set by the signal handler, read between slices of events.
extern std::atomic<bool> sim_stop_requested;

// Splits "alpha=1" into the setting and its value. nullopt, after a complaint: no such setting.
std::optional<std::pair<const fabric::sim::Knob*, std::string>> split_setting(const std::string& word,
                                                                              const char* option);

// The exit status: 0, or sim_not_written after a complaint.
int write_sim_files(const std::filesystem::path& directory,
                    const std::vector<std::pair<std::string, std::string>>& files);

// sim_failed if an event of --fail-on happened in a run, which standard error then reports; else 0.
int verdict(const SimCommand& command, std::span<const fabric::sim::Summary> runs);

// A number that mpirun gives a rank in the environment variable `name`; 0 without mpirun.
unsigned told_by_mpirun(const char* name);

// In sim_sweep.cpp: runs --sweep, here or split over MPI's ranks. Returns the exit status.
int run_sweep(const SimCommand& command, const fabric::sim::Scenario& scenario,
              const fabric::sim::Knobs& knobs);

// The progress line, shown only if standard error is a terminal.
class SimProgress {
 public:
  explicit SimProgress(bool quiet);
  ~SimProgress();
  SimProgress(const SimProgress&) = delete;
  SimProgress& operator=(const SimProgress&) = delete;

  void run(const fabric::sim::Simulation& simulation);
  void runs(std::size_t done, std::size_t all);

 private:
  using Clock = std::chrono::steady_clock;
  bool due();
  void bar(double part, const std::string& text);

  bool shown_, written_ = false;
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
};

}  // namespace weir::command
