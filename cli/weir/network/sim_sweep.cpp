// `weir sim --sweep`: runs the grid that the command line names on the threads of this process or, under
// mpirun, on the threads of all ranks. Rank 0 writes and prints.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <type_traits>

#include "cli/weir/command.hpp"
#include "cli/weir/module.hpp"
#include "cli/weir/network/sim_command.hpp"
#include "cli/weir/network/sweep_ranks.hpp"
#include "fabric/plan/report.hpp"
#include "fabric/sim/sweep.hpp"

namespace weir::command {
namespace {

namespace sim = fabric::sim;

static_assert(std::is_trivially_copyable_v<sim::Summary>, "it travels between ranks as its bytes");

// If mpirun has enough cores, it binds each rank to its own, and a rank uses as many threads as it has cores.
// Otherwise the ranks of a machine share its cores.
unsigned threads_of(const SimCommand& command) {
  if (command.jobs != 0) return command.jobs;
  const unsigned mine = std::max(1u, std::thread::hardware_concurrency());
  const unsigned neighbours = std::max(1u, told_by_mpirun("OMPI_COMM_WORLD_LOCAL_SIZE"));
  const bool bound = std::cmp_less(mine, ::sysconf(_SC_NPROCESSORS_ONLN));
  return bound ? mine : std::max(1u, mine / neighbours);
}

// FNV-1a over everything that determines the rows.
std::uint64_t question_of(const SimCommand& command, const sim::Scenario& scenario) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ text.size()) * 0x100000001b3;
  };
  std::ifstream file(command.file, std::ios::binary);
  add({std::string(std::istreambuf_iterator<char>(file), {})});
  add(fabric::json_report(scenario.plan));
  for (const auto& word : command.set) add(word);
  for (const auto& word : command.sweep) add(word);
  add(WEIR_VERSION);
  return hash ^ sizeof(sim::Summary);
}

struct SplitSweep {
  const sim::Scenario& scenario;
  const sim::Knobs& knobs;
  const std::vector<sim::SweepAxis>& axes;
  std::vector<sim::SweepRow>& rows;
  SimProgress& progress;
  std::size_t done = 0;

  static void run(void* self, std::uint64_t row, void* result) {
    const auto& sweep = *static_cast<SplitSweep*>(self);
    const auto summary =
        sim::run_row(sweep.scenario, sweep.knobs, sweep.axes, sweep.rows[row], sim_stop_requested);
    std::memcpy(result, &summary, sizeof summary);
  }
  static void arrived(void* self, std::uint64_t row, const void* result) {
    auto& sweep = *static_cast<SplitSweep*>(self);
    std::memcpy(&sweep.rows[row].summary, result, sizeof(sim::Summary));
    sweep.rows[row].done = true;
    sweep.progress.runs(++sweep.done, sweep.rows.size());
  }
  // Relaxed: it only says that nobody waits for the rest any more; no other data depends on it.
  static bool stopped(void*) { return sim_stop_requested.load(std::memory_order_relaxed); }
};

std::optional<std::vector<sim::SweepAxis>> read_axes(const SimCommand& command, const sim::Scenario& scenario,
                                                     const sim::Knobs& knobs, int& status) {
  std::vector<sim::SweepAxis> axes;
  std::size_t runs = 1;
  status = sim_misused;
  for (const auto& word : command.sweep) {
    const auto pair = split_setting(word, "--sweep");
    if (!pair) return std::nullopt;
    if (std::ranges::any_of(axes, [&](const sim::SweepAxis& axis) { return axis.knob == pair->first; })) {
      complain(
          "sim",
          fmt::format("--sweep {}: {} is swept already; give all its values once", word, pair->first->key),
          sim_misused);
      return std::nullopt;
    }
    sim::SweepAxis axis{pair->first, {}};
    for (std::size_t at = 0; at <= pair->second.size();) {
      const auto end = std::min(pair->second.find(',', at), pair->second.size());
      axis.values.push_back(pair->second.substr(at, end - at));
      sim::Knobs probe = knobs;
      auto wrong = sim::set_knob(probe, *axis.knob, axis.values.back());
      if (wrong.empty()) wrong = sim::headroom_beyond_buffer(scenario, probe);
      if (!wrong.empty()) {
        complain("sim", fmt::format("--sweep {}: {}", word, wrong), sim_misused);
        return std::nullopt;
      }
      at = end + 1;
    }
    runs *= axis.values.size();
    if (runs > sim::most_sweep_runs) {
      complain("sim", "a sweep of more than 100,000 runs", sim_misused);
      return std::nullopt;
    }
    axes.push_back(std::move(axis));
  }
  // Values that are valid one by one may be too much together.
  for (const auto& row : sim::sweep_rows(axes)) {
    sim::Knobs turned = knobs;
    for (std::size_t i = 0; i < axes.size(); ++i) sim::set_knob(turned, *axes[i].knob, row.values[i]);
    const auto trouble = sim::beyond_a_run(scenario, turned);
    if (trouble.empty()) continue;
    complain("sim", fmt::format("--sweep at {}: {}", fmt::join(row.values, ", "), trouble), sim_misused);
    return std::nullopt;
  }
  return axes;
}

int report(const SimCommand& command, const sim::Scenario& scenario, const std::vector<sim::SweepAxis>& axes,
           const std::vector<sim::SweepRow>& rows) {
  if (!command.output.empty()) {
    const int status = write_sim_files(
        command.output,
        {{"sweep.csv", sim::sweep_csv(axes, rows)}, {"sweep.html", sim::sweep_html(scenario, axes, rows)}});
    if (status != 0) return status;
  }
  const int status =
      print_out("sim",
                command.json  ? sim::sweep_json(axes, rows)
                : command.csv ? sim::sweep_csv(axes, rows)
                              : sim::sweep_table(axes, rows),
                sim_stop_requested.load(std::memory_order_relaxed) ? sim_interrupted : 0, sim_not_written);
  if (status != 0) return status;
  std::vector<sim::Summary> done;
  for (const auto& row : rows)
    if (row.done) done.push_back(row.summary);
  return verdict(command, done);
}

int split_over_ranks(const SimCommand& command, const sim::Scenario& scenario, const sim::Knobs& knobs,
                     const std::vector<sim::SweepAxis>& axes) {
  const auto function = module_function(sweep_ranks_module, sweep_ranks_function);
  if (!function)
    return complain("sim", "cannot split the sweep over MPI's ranks: " + function.error(), sim_not_there);
  auto rows = sim::sweep_rows(axes);
  SweepRanksOutcome outcome{};
  {
    SimProgress progress(command.quiet);
    SplitSweep sweep{scenario, knobs, axes, rows, progress};
    const SweepRanksWork work{rows.size(),
                              sizeof(sim::Summary),
                              question_of(command, scenario),
                              threads_of(command),
                              &sweep,
                              SplitSweep::run,
                              SplitSweep::arrived,
                              SplitSweep::stopped};
    outcome = reinterpret_cast<SplitOverRanks*>(*function)(&work);
  }
  if (outcome.end == SweepRanksEnd::failed)
    return outcome.rank == 0 ? complain("sim", outcome.trouble, sim_not_there) : sim_not_there;
  const int status = outcome.rank == 0 ? report(command, scenario, axes, rows) : 0;
  if (outcome.end == SweepRanksEnd::done) return status;
  std::fflush(stdout);
  ::_exit(sim_interrupted);  // MPI's own exit handlers would wait for peers that may be gone
}

}  // namespace

unsigned told_by_mpirun(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

int run_sweep(const SimCommand& command, const sim::Scenario& scenario, const sim::Knobs& knobs) {
  int status = 0;
  const auto axes = read_axes(command, scenario, knobs, status);
  if (!axes) return status;
  if (told_by_mpirun("OMPI_COMM_WORLD_SIZE") > 1) return split_over_ranks(command, scenario, knobs, *axes);
  std::vector<sim::SweepRow> rows;
  {
    SimProgress progress(command.quiet);
    std::size_t runs = 1;
    for (const auto& axis : *axes) runs *= axis.values.size();
    rows = sim::sweep(scenario, knobs, *axes, threads_of(command), sim_stop_requested,
                      [&](std::size_t done) { progress.runs(done, runs); });
  }
  return report(command, scenario, *axes, rows);
}

}  // namespace weir::command
