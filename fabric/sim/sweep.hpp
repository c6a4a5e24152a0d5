// A grid of runs: every combination of the values of some knobs, on as many threads as wanted. Runs share the
// scenario and nothing else, and a row has its place before it is run, so the result does not depend on how
// the grid was split.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "fabric/sim/scenario.hpp"
#include "fabric/sim/summary.hpp"

namespace weir::fabric::sim {

struct SweepAxis {
  const Knob* knob = nullptr;
  std::vector<std::string> values;
};

struct SweepRow {
  std::vector<std::string> values;  // one of each axis
  Summary summary;
  bool done = false;  // false: stopped before it began
};

inline constexpr std::size_t most_sweep_runs = 100'000;

// Every combination, in the order of the grid; none is run yet.
std::vector<SweepRow> sweep_rows(const std::vector<SweepAxis>& axes);

// One of them. `stop` ends it soon; its summary then says that it is partial.
Summary run_row(const Scenario& scenario, const Knobs& knobs, const std::vector<SweepAxis>& axes,
                const SweepRow& row, const std::atomic<bool>& stop);

// All of them, in this process. `stop` ends all runs soon. `on_done` is called with the number of rows done,
// from any thread, one at a time.
std::vector<SweepRow> sweep(const Scenario& scenario, const Knobs& knobs, const std::vector<SweepAxis>& axes,
                            unsigned threads, const std::atomic<bool>& stop,
                            const std::function<void(std::size_t)>& on_done);

// An array of an object for each row: the settings that were turned, as they were written, and the figures.
std::string sweep_json(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows);
std::string sweep_csv(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows);
std::string sweep_table(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows);
std::string sweep_html(const Scenario& scenario, const std::vector<SweepAxis>& axes,
                       const std::vector<SweepRow>& rows);

}  // namespace weir::fabric::sim
