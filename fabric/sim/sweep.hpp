// A grid of runs: every combination of the values of some knobs, on any number of threads. Runs
// share only the scenario, and a row's place is fixed before it runs, so the result does not depend
// on how the grid was split.
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
  std::vector<std::string> values;  // one per axis
  Summary summary;
  bool done = false;  // false: stopped before it started
};

inline constexpr std::size_t most_sweep_runs = 100'000;

// Every combination in the order of the grid; none has run yet.
std::vector<SweepRow> sweep_rows(const std::vector<SweepAxis>& axes);

// Runs one of them. `stop` ends it soon; its summary is then marked as partial.
Summary run_row(const Scenario& scenario, const Knobs& knobs, const std::vector<SweepAxis>& axes,
                const SweepRow& row, const std::atomic<bool>& stop);

// Runs all of them in this process. `stop` ends all runs soon. `on_done` gets the number of finished rows; it
// is called from any thread, by one at a time.
std::vector<SweepRow> sweep(const Scenario& scenario, const Knobs& knobs, const std::vector<SweepAxis>& axes,
                            unsigned threads, const std::atomic<bool>& stop,
                            const std::function<void(std::size_t)>& on_done);

// An array with one object per row: the changed settings, as written, and the figures.
std::string sweep_json(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows);
std::string sweep_csv(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows);
std::string sweep_table(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows);
std::string sweep_html(const Scenario& scenario, const std::vector<SweepAxis>& axes,
                       const std::vector<SweepRow>& rows);

}  // namespace weir::fabric::sim
