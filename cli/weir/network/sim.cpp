// `weir sim`: turns a scenario file into what would happen, as numbers and pictures.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "cli/weir/command.hpp"
#include "cli/weir/host_port.hpp"
#include "cli/weir/network/sim_command.hpp"
#include "cli/weir/network/sim_telemetry.hpp"
#include "cli/weir/parse_words.hpp"
#include "cli/weir/whole_file.hpp"
#include "fabric/plan/report.hpp"
#include "fabric/sim/collective.hpp"
#include "fabric/sim/summary.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {
namespace {

namespace fs = std::filesystem;
namespace sim = fabric::sim;

constexpr const char* sim_description =
    "Simulates a lossless RoCEv2 network packet by packet: hosts with DCQCN and go-back-N, switches with a "
    "shared buffer,\n"
    "PFC and ECN. SCENARIO is a TOML file with a network, as for weir plan, and what its hosts send (its "
    "keys "
    "are in\n"
    "weir-sim(1)). Buffers, thresholds and marks come from the plan unless the file or --set changes them. A "
    "small one:\n\n"
    "  [leaf_spine]\n"
    "  spines = 2\n"
    "  leaves = 4\n"
    "  hosts_per_leaf = 8\n"
    "  host_speed = \"100G\"\n"
    "  host_cable = \"3m\"\n"
    "  spine_speed = \"400G\"\n"
    "  spine_cable = \"40m\"\n"
    "  leaf_model = \"generic-32m\"\n"
    "  spine_model = \"generic-32m\"\n\n"
    "  [[workload]]\n"
    "  kind = \"incast\"\n"
    "  senders = 16\n"
    "  bytes = \"1MB\"\n";
constexpr const char* sim_footer =
    "Examples:\n"
    "  weir sim incast.toml                                    the numbers, as text\n"
    "  weir sim incast.toml -o out                             out/report.html with plots, CSV, JSON\n"
    "  weir sim incast.toml --set headroom=4KB                 one setting changed: does it lose packets "
    "now?\n"
    "  weir sim incast.toml --fail-on drops,deadlock           for scripts: exits with 1 if packets were "
    "lost\n"
    "  weir sim incast.toml --sweep alpha=0.125,0.5,1 --sweep kmin=50KB,400KB -o out\n"
    "  mpirun -np 64 weir sim incast.toml --sweep alpha=0.03125,0.125,0.5,2    over machines, with Open MPI\n"
    "  weir sim --settings                                     all settings for --set and --sweep\n\n"
    "The same scenario and seed give the same bytes. Ctrl-C writes what was simulated so far, marked "
    "partial.\n"
    "Exit status: 0 simulated; 1 what --fail-on names happened; 2 the command line is invalid;\n"
    "3 the scenario is invalid; 4 the output cannot be written; 5 MPI or gRPC is missing, or the ranks "
    "differ;\n"
    "130 interrupted.";

constexpr std::size_t most_collectives = 16;  // lines of the summary

static_assert(std::atomic<bool>::is_always_lock_free);
void request_stop(int) { sim_stop_requested.store(true, std::memory_order_relaxed); }

int list_settings() {
  std::string out;
  for (const auto& knob : sim::knobs())
    out += fmt::format("{:<32} {:<8} {}\n", fmt::format("{}.{}", knob.table, knob.key),
                       sim::kind_text(knob.kind), knob.what);
  return print_out("sim", out, 0, sim_not_written);
}

std::string summary_text(const sim::Summary& s, const sim::Simulation& simulation) {
  std::string out;
  const auto add = [&out]<class... A>(fmt::format_string<A...> format, A&&... values) {
    fmt::format_to(std::back_inserter(out), format, std::forward<A>(values)...);
  };
  add("{}simulated {:.3f} ms, {} of {} flows finished, goodput {}\n", s.partial ? "PARTIAL: " : "",
      s.simulated_us / 1000, s.finished, s.flows, sim::rate_text(s.goodput_gbps));
  add("{:<22}{:>12}{:>12}{:>12}{:>12}\n", "", "median", "95 %", "99 %", "most");
  const auto row = [&add](const char* name, const sim::Percentiles& p) {
    add("{:<22}{:>12.3f}{:>12.3f}{:>12.3f}{:>12.3f}\n", name, p.p50, p.p95, p.p99, p.most);
  };
  row("completion time, us", s.completion_us);
  row("slowdown", s.slowdown);
  add("lossless drops {}, other drops {}, retransmitted {}, of them needlessly {}\n", s.totals.lossless_drops,
      s.totals.ingress_drops - s.totals.lossless_drops + s.totals.egress_drops + s.totals.link_drops,
      s.totals.retransmitted, s.totals.spurious);
  add("PFC frames {}, queues paused {:.3f} ms together; ECN marks {}, CNPs {}\n", s.totals.pfc_frames,
      s.paused_us / 1000, s.totals.marked, s.totals.cnps);
  add("most in use: shared buffer of a switch {} B, headroom of a priority group {} B, egress queue {} B\n",
      s.buffer_most_bytes, s.headroom_most_bytes, s.queue_most_bytes);
  const auto collectives = sim::collective_results(simulation);
  for (std::size_t i = 0; i < std::min(collectives.size(), most_collectives); ++i)
    add("{}\n", sim::describe(collectives[i]));
  if (collectives.size() > most_collectives)
    add("and {} collectives more, in summary.json\n", collectives.size() - most_collectives);
  for (const auto& incident : simulation.incidents())
    add("{}\n", sim::describe(incident, simulation.fabric()));
  return out;
}

// Runs to the end, or until stopped; returns true if it was stopped before the end.
bool simulate(const SimCommand& command, sim::Simulation& simulation, SimTelemetry* telemetry) {
  const sim::Ticks interval = std::max<sim::Ticks>(1, simulation.experiment().counter_interval);
  sim::Ticks due = telemetry != nullptr ? interval : sim::no_time;
  bool more = true;
  SimProgress progress(command.quiet);
  while (more && !sim_stop_requested.load(std::memory_order_relaxed)) {
    more = simulation.run_some(1u << 17, due);
    progress.run(simulation);
    if (telemetry == nullptr || (more && simulation.now() < due)) continue;
    telemetry->send(simulation);
    due += interval;
  }
  return more;
}

void say_what_arrived(const SimCommand& command, const TelemetryCounts& counts) {
  fmt::print(stderr, "weir sim: telemetry to {}: {} of {} notifications delivered", command.telemetry,
             counts.delivered, counts.pushed);
  if (counts.dropped != 0)
    fmt::print(stderr,
               ", {} DROPPED: the collector was away or slow for longer than --telemetry-queue and "
               "--telemetry-wait allow",
               counts.dropped);
  fmt::print(stderr, "; {} connection{}\n", counts.connections, counts.connections == 1 ? "" : "s");
}

int run_scenario(const SimCommand& command, const sim::Scenario& scenario, const sim::Knobs& knobs) {
  const auto prepared = sim::prepare(scenario, knobs);
  sim::Simulation simulation(prepared.fabric, prepared.experiment);
  std::optional<SimTelemetry> telemetry;
  if (!command.telemetry.empty()) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    auto opened = SimTelemetry::open(command.telemetry, command.telemetry_queue,
                                     std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    if (!opened) return complain("sim", "cannot send telemetry: " + opened.error(), sim_not_there);
    telemetry.emplace(std::move(*opened));
  }
  const bool more = simulate(command, simulation, telemetry ? &*telemetry : nullptr);
  const auto summary = sim::summarize(simulation, more);
  sim::RunTitle title{scenario.name, command.file, {}, {}, scenario.network.get(), {}};
  for (const auto& word : command.set)
    title.settings.emplace_back(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  for (const auto& workload : scenario.workloads) title.workloads.push_back(workload.name);
  if (!command.output.empty()) title.ports_file = "ports.csv";
  const auto json = sim::summary_json(simulation, summary, title);
  if (!command.output.empty()) {
    const std::vector<std::pair<std::string, std::string>> files = {
        {"summary.json", json},
        {"flows.csv", sim::flows_csv(simulation)},
        {"ports.csv", sim::ports_csv(simulation)},
        {"totals.csv", sim::totals_csv(simulation)},
        {"switches.csv", sim::switches_csv(simulation)},
        {"queues.csv", sim::queues_csv(simulation)},
        {"report.html", sim::html_report(simulation, summary, title)}};
    if (const int status = write_sim_files(command.output, files); status != 0) return status;
    fmt::print(stderr, "weir sim: wrote {}/report.html and {} more\n", command.output, files.size() - 1);
  }
  const int status = print_out("sim", command.json ? json : summary_text(summary, simulation),
                               more ? sim_interrupted : 0, sim_not_written);
  if (telemetry) say_what_arrived(command, telemetry->close(command.telemetry_wait_ms));
  return status == 0 ? verdict(command, std::span(&summary, 1)) : status;
}

}  // namespace

std::atomic<bool> sim_stop_requested{false};

int verdict(const SimCommand& command, std::span<const sim::Summary> runs) {
  struct Trouble {
    const char* name;
    const char* what;
    std::uint64_t (*count)(const sim::Summary&);
  };
  static constexpr Trouble troubles[] = {
      {"drops", "lossless packets lost", [](const sim::Summary& s) { return s.totals.lossless_drops; }},
      {"deadlock", "deadlocks", [](const sim::Summary& s) { return s.deadlocks; }},
      {"storm", "pause storms", [](const sim::Summary& s) { return s.storms; }},
      {"unfinished", "flows not finished", [](const sim::Summary& s) { return s.flows - s.finished; }},
  };
  int status = 0;
  for (const auto& trouble : troubles) {
    if (std::ranges::find(command.fail_on, trouble.name) == command.fail_on.end()) continue;
    std::uint64_t count = 0;
    for (const auto& run : runs) count += trouble.count(run);
    if (count == 0) continue;
    fmt::print(stderr, "weir sim: --fail-on {}: {} {}\n", trouble.name, count, trouble.what);
    status = sim_failed;
  }
  return status;
}

// Settings are written with their table or without.
std::string meant_setting(const std::string& word) {
  std::vector<std::string> names;
  for (const sim::Knob& knob : sim::knobs())
    names.push_back((word.find('.') == std::string::npos ? "" : std::string(knob.table) + ".") +
                    std::string(knob.key));
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return did_you_mean(word, candidates);
}

std::optional<std::pair<const sim::Knob*, std::string>> split_setting(const std::string& word,
                                                                      const char* option) {
  const auto equals = word.find('=');
  const auto* knob = equals == std::string::npos ? nullptr : sim::find_knob(word.substr(0, equals));
  if (knob == nullptr) {
    complain(
        "sim",
        fmt::format("{} {}: {}; weir sim --settings lists the settings", option, word,
                    equals == std::string::npos ? "no = in it"
                                                : "no such setting" + meant_setting(word.substr(0, equals))),
        sim_misused);
    return std::nullopt;
  }
  return std::pair{knob, word.substr(equals + 1)};
}

int write_sim_files(const fs::path& directory,
                    const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [name, text] : files)
    if (const auto trouble = write_whole_file(directory / name, text); !trouble.empty())
      return complain("sim", trouble, sim_not_written);
  return 0;
}

namespace {

void declare_options(CLI::App& app, SimCommand& command) {
  app.add_option("SCENARIO", command.file, "scenario file")->type_name("FILE");
  app.add_option("-o,--output", command.output,
                 "write report.html, summary.json and CSV files into this directory")
      ->type_name("DIR");
  app.add_option("--set", command.set, "change a setting of the file; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--sweep", command.sweep, "run once for each value; several options make a grid")
      ->type_name("KEY=A,B,C")
      ->allow_extra_args(false);
  app.add_option("-j,--jobs", command.jobs, "runs of a sweep at a time (default: number of processors)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  auto* json = app.add_flag("--json", command.json, "print the summary as JSON; for a sweep, an array");
  app.add_flag("--csv", command.csv, "print a sweep as CSV")->excludes(json);
  app.add_option("--telemetry", command.telemetry,
                 "stream the counters to this collector (gNMI dial-out; see weir collector)")
      ->type_name("HOST:PORT");
  app.add_option("--telemetry-queue", command.telemetry_queue,
                 "bytes to keep while the collector is away; when full, the oldest are dropped")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->capture_default_str();
  app.add_option("--telemetry-wait", command.telemetry_wait_ms,
                 "milliseconds to wait at the end until the collector has the rest")
      ->type_name("MS")
      ->check(CLI::Range(0, 3'600'000).description(""))
      ->capture_default_str();
  app.add_option("--fail-on", command.fail_on,
                 "exit with 1 if a run had: drops (of lossless packets), deadlock, storm, unfinished (flows)")
      ->type_name("A,B")
      ->delimiter(',')
      ->check(CLI::IsMember({"drops", "deadlock", "storm", "unfinished"}).description(""));
  app.add_flag("-q,--quiet", command.quiet, "no progress line");
  app.add_flag("--settings", command.settings, "list the settings for --set and --sweep, and exit");
}

// What contradicts the rest of the command line.
std::optional<std::string> at_odds(const SimCommand& command) {
  if (command.file.empty()) return "name a scenario file; see weir sim --help";
  if (command.csv && command.sweep.empty()) return "--csv prints a sweep: add --sweep, or use --json";
  if (command.telemetry.empty()) return std::nullopt;
  if (!command.sweep.empty()) return "--telemetry needs a single run: leave out --sweep";
  if (const auto collector = read_host_port(command.telemetry); !collector)
    return "--telemetry " + collector.error();
  return std::nullopt;
}

void print_warnings(const fabric::Plan& plan) {
  for (const auto& finding : plan.findings)
    if (finding.severity != fabric::Severity::note) fmt::print(stderr, "{}", fabric::text(finding));
}

// The scenario's knobs with the values of --set; nullopt, after a complaint: a value is invalid.
std::optional<sim::Knobs> turned_knobs(const SimCommand& command, const sim::Scenario& scenario) {
  sim::Knobs knobs = scenario.knobs;
  for (const auto& word : command.set) {
    const auto pair = split_setting(word, "--set");
    if (!pair) return std::nullopt;
    if (const auto wrong = sim::set_knob(knobs, *pair->first, pair->second); !wrong.empty()) {
      complain("sim", fmt::format("--set {}: {}", word, wrong), sim_misused);
      return std::nullopt;
    }
  }
  if (const auto trouble = sim::headroom_beyond_buffer(scenario, knobs); !trouble.empty()) {
    complain("sim", "--set headroom: " + trouble, sim_misused);
    return std::nullopt;
  }
  if (const auto trouble = sim::beyond_a_run(scenario, knobs); !trouble.empty()) {
    complain("sim", "with these --set options, " + trouble, sim_misused);
    return std::nullopt;
  }
  return knobs;
}

void stop_on_signals() {
  struct sigaction action{};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESETHAND;  // a second Ctrl-C ends the process at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int sim(std::span<const std::string> arguments) {
  SimCommand command;
  CLI::App app(sim_description, "weir sim");
  app.footer(sim_footer);
  declare_options(app, command);
  if (const auto ended = parse_words(app, "sim", arguments)) return *ended;
  if (command.settings) return list_settings();
  if (const auto wrong = at_odds(command)) return complain("sim", *wrong, sim_misused);

  fabric::Complaints complaints;
  const auto scenario = sim::load_scenario(command.file, complaints);
  if (!scenario) {
    fmt::print(stderr, "{}", complaints.text());
    return sim_bad_input;
  }
  if (!command.quiet) print_warnings(scenario->plan);
  const auto knobs = turned_knobs(command, *scenario);
  if (!knobs) return sim_misused;
  stop_on_signals();
  // Ranks may find that they sweep different things, and then no directory may be left behind.
  if (told_by_mpirun("OMPI_COMM_WORLD_SIZE") <= 1 && !command.output.empty())
    if (const auto trouble = make_directory(command.output); !trouble.empty())
      return complain("sim", trouble, sim_not_written);
  if (!command.sweep.empty()) return run_sweep(command, *scenario, *knobs);
  if (told_by_mpirun("OMPI_COMM_WORLD_RANK") != 0) return 0;  // one run is not split: rank 0 does it
  return run_scenario(command, *scenario, *knobs);
}

}  // namespace weir::command
