// `weir fabric run SCENARIO.toml`: real programs across a simulated network, in virtual time.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/weir/command.hpp"
#include "cli/weir/fabric/fabric_command.hpp"
#include "cli/weir/launch/launch.hpp"
#include "fabric/topology/quantity.hpp"
#include "twin/run.hpp"

namespace weir::command {
namespace {

constexpr int scenario_invalid = 3, programs_failed = 4, runs_differ = 5;

// The program `weir`, which lies beside this one, or one folder above it.
std::string find_weir() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const auto& place : {own.parent_path() / "weir", own.parent_path() / "../bin/weir"})
    if (std::filesystem::exists(place, error)) return place.lexically_normal().string();
  return {};
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (text.empty() || read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return number;
}

// The only word of the command line. The error is the exit status, after a complaint.
std::expected<twin::Scenario, int> load(std::string_view command, std::span<const std::string> words) {
  if (words.size() != 1)
    return std::unexpected(complain(
        command, "it wants one scenario file; programs stand in it, as [[program]]", fabric_misused));
  fabric::Complaints complaints;
  auto scenario = twin::load_scenario(words.front(), complaints);
  if (!scenario) return std::unexpected(complain(command, "\n" + complaints.text(), scenario_invalid));
  return std::move(*scenario);
}

std::expected<std::string, int> weir_beside(std::string_view command) {
  std::string found = find_weir();
  if (!found.empty()) return found;
  return std::unexpected(
      complain(command, "the program weir is not beside this one; build or install both", fabric_failed));
}

// Until a line is read, which lets the run go on, or a signal comes. Without a terminal: only the signal.
void wait_for_line() {
  for (;;) {
    char c = 0;
    const ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 || c == '\n') return;
    if (got == 0 && ::pause() < 0) return;
  }
}

// To the standard output, before all else that the run prints.
void show_stop(double us, const std::string& threads) {
  const std::string text = fmt::format(
      "stopped at {:.3f} us of virtual time; a debugger may attach to these processes (gdb -p)\n{}"
      "Enter lets the run go on, Ctrl-C ends it\n",
      us, threads);
  if (print_out("fabric run", text, 0, fabric_failed) == 0) wait_for_line();
}

int run_scenario(std::span<const std::string> arguments) {
  bool verify = false;
  std::string seed_text, captures, report, stop_text;
  const FabricOption options[] = {{.name = "--verify", .flag = &verify},
                                  {.name = "--seed", .value = &seed_text},
                                  {.name = "--pcap", .value = &captures},
                                  {.name = "--report", .value = &report},
                                  {.name = "--stop-at", .value = &stop_text}};
  const auto words = read_fabric_words("run", arguments, options);
  if (!words) return words.error();
  const auto scenario = load("fabric run", *words);
  if (!scenario) return scenario.error();
  auto weir = weir_beside("fabric run");
  if (!weir) return weir.error();
  const auto seed = seed_text.empty() ? scenario->network.knobs.seed : number_in(seed_text);
  if (!seed) return complain("fabric run", "--seed wants a number, not " + seed_text, fabric_misused);

  const auto stop_ns = fabric::read_quantity(stop_text, fabric::Unit::nanoseconds);
  if (!stop_text.empty() && (!stop_ns || *stop_ns < 0 || *stop_ns > fabric::sim::longest_run_ns))
    return complain("fabric run", "--stop-at wants a time up to 174s, such as 12.5ms, not " + stop_text,
                    fabric_misused);

  twin::RunOptions run{
      .weir = std::move(*weir), .seed = *seed, .captures = captures, .report = !report.empty()};
  if (!stop_text.empty()) {
    run.stop_at = fabric::sim::from_ns(*stop_ns);
    run.stopped = [&](const std::string& threads) { show_stop(*stop_ns / 1e3, threads); };
  }
  const auto first = twin::run_once(*scenario, run);
  if (!first) return complain("fabric run", first.error(), fabric_failed);
  if (!report.empty() && !(std::ofstream(report) << first->report << std::flush))
    return complain("fabric run", "cannot write " + report, fabric_failed);
  const int status = twin::failure_of(*scenario, *first).empty() ? 0 : programs_failed;
  const int shown = print_out("fabric run", twin::summary(*scenario, *first), status, fabric_failed);
  if (!verify || shown == fabric_failed || !first->run.ended_because.empty()) return shown;
  run.captures.clear();
  run.stop_at = link::fabric::no_time;
  const auto second = twin::run_once(*scenario, run);
  if (!second) return complain("fabric run", second.error(), fabric_failed);
  const std::string difference = twin::first_difference(*scenario, *first, *second);
  if (difference.empty())
    return print_out("fabric run", "verified: two runs are alike\n", status, fabric_failed);
  return print_out("fabric run", "two runs differ: " + difference + "\n", runs_differ, fabric_failed);
}

// "3" or "1..1000", both included. nullopt: neither.
std::optional<std::pair<std::uint64_t, std::uint64_t>> range_in(std::string_view text) {
  const auto dots = text.find("..");
  const auto first = number_in(text.substr(0, dots));
  const auto last = dots == text.npos ? first : number_in(text.substr(dots + 2));
  if (!first || !last || *last < *first) return std::nullopt;
  return std::pair(*first, *last);
}

// Before the command of a program.
bool names_a_scenario(std::span<const std::string> arguments) {
  for (const std::string& word : arguments) {
    if (word == "--" || word.starts_with("--host")) return false;
    if (word.ends_with(".toml")) return true;
  }
  return false;
}

}  // namespace

// One line a seed that failed, and how to see that run again.
int fabric_test(std::span<const std::string> arguments) {
  constexpr std::string_view command = "fabric test";
  std::string seeds_text = "1..10";
  const FabricOption options[] = {{.name = "--seeds", .value = &seeds_text}};
  const auto words = read_fabric_words("test", arguments, options);
  if (!words) return words.error();
  const auto scenario = load(command, *words);
  if (!scenario) return scenario.error();
  const auto seeds = range_in(seeds_text);
  if (!seeds) return complain(command, "--seeds wants 1..1000, not " + seeds_text, fabric_misused);
  const auto weir = weir_beside(command);
  if (!weir) return weir.error();
  std::uint64_t failed = 0, runs = 0;
  for (std::uint64_t seed = seeds->first;; ++seed) {
    const auto outcome =
        twin::run_once(*scenario, {.weir = *weir, .seed = seed, .captures = {}, .report = false});
    if (!outcome) return complain(command, outcome.error(), fabric_failed);
    ++runs;
    const std::string failure = twin::failure_of(*scenario, *outcome);
    if (!failure.empty()) {
      ++failed;
      const std::string line = "seed " + std::to_string(seed) + ": " + failure +
                               "\n  again: weir fabric run --seed " + std::to_string(seed) + " " +
                               words->front() + "\n";
      if (print_out(command, line, 0, fabric_failed) != 0) return fabric_failed;
    }
    if (outcome->run.interrupted) return fabric_failed;
    if (seed == seeds->second) break;
  }
  const std::string all = std::to_string(runs - failed) + " of " + std::to_string(runs) + " seeds passed\n";
  return print_out(command, all, failed == 0 ? 0 : programs_failed, fabric_failed);
}

int fabric_run(std::span<const std::string> arguments) {
  return names_a_scenario(arguments) ? run_scenario(arguments)
                                     : run_program("fabric run", arguments, Place::in_a_host);
}

}  // namespace weir::command
