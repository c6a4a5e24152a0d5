// `weir plan`: turns a network file into headroom, marks, warnings, pictures and configuration.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "cli/weir/command.hpp"
#include "cli/weir/parse_words.hpp"
#include "cli/weir/whole_file.hpp"
#include "fabric/plan/plan_network.hpp"
#include "fabric/plan/report.hpp"
#include "fabric/plan/sonic_config.hpp"
#include "fabric/topology/read_network.hpp"

namespace weir::command {
namespace {

namespace fs = std::filesystem;

constexpr int plan_unsafe = 1, plan_misused = 2, plan_bad_input = 3, plan_not_written = 4;

constexpr const char* plan_description =
    "Plans a lossless RoCEv2 network: the PFC headroom of every port, term by term; the buffer split, alpha, "
    "XOFF and\n"
    "XON of every switch; ECN marks that act before PFC; and what can go wrong, deadlocks first. NETWORK is "
    "a "
    "TOML file\n"
    "with the switches and hosts and the cables between them (its keys are in weir-plan(1)). The smallest "
    "useful one:\n\n"
    "  [leaf_spine]\n"
    "  spines = 4\n"
    "  leaves = 8\n"
    "  hosts_per_leaf = 16\n"
    "  host_speed = \"100G\"\n"
    "  host_cable = \"3m\"\n"
    "  spine_speed = \"400G\"\n"
    "  spine_cable = \"40m\"\n"
    "  leaf_model = \"generic-32m\"\n"
    "  spine_model = \"generic-32m\"\n";
constexpr const char* plan_footer =
    "Examples:\n"
    "  weir plan network.toml                                the plan, as text\n"
    "  weir plan network.toml --format html -o plan.html     with pictures, for a browser\n"
    "  weir plan network.toml --sonic out                    out/SWITCH/config_db.json for each switch\n"
    "  weir plan --models                                    the built-in switch models\n\n"
    "Exit status: 0 planned, also with warnings; 1 the planned network can lose packets or deadlock (with "
    "--strict: or\n"
    "has a warning); 2 the command line is invalid; 3 the network file is invalid; 4 the output cannot be "
    "written.";

struct PlanCommand {
  std::string file, format = "table", output, sonic_directory;
  bool strict = false, no_failures = false, models = false;
};

int list_models() {
  auto out = fmt::format("{:<14}{:>12}{:>7}  {:<9}{}\n", "MODEL", "BUFFER", "CELL", "HEADROOM", "SOURCE");
  for (const auto& model : fabric::built_in_models())
    out +=
        fmt::format("{:<14}{:>12}{:>7}  {:<9}{}\n", model.name, model.buffer_bytes, model.cell_bytes,
                    model.headroom_pool == fabric::HeadroomPool::shared ? "shared" : "private", model.source);
  return print_out("plan", out, 0, plan_not_written);
}

// Makes all texts before it creates the first file, so an error on the way leaves no partial output.
int write_sonic(const fabric::Plan& plan, const std::string& directory) {
  std::vector<std::pair<fs::path, std::string>> files;
  for (const auto& kind : plan.switches)
    for (const auto node : kind.switches)
      files.emplace_back(fs::path(directory) / (*plan.network)[node].name / "config_db.json",
                         fabric::sonic_config(plan, kind, node));
  for (const auto& [path, text] : files)
    if (const auto trouble = write_whole_file(path, text); !trouble.empty())
      return complain("plan", trouble, plan_not_written);
  fmt::print(stderr, "weir plan: wrote {} files, {}/SWITCH/config_db.json\n", files.size(), directory);
  return 0;
}

std::string report(const fabric::Plan& plan, const std::string& format) {
  if (format == "json") return fabric::json_report(plan);
  if (format == "html") return fabric::html_report(plan);
  return fabric::table_report(plan);
}

int run_plan(const PlanCommand& command) {
  fabric::Complaints complaints;
  const auto network = fabric::load_network(command.file, complaints);
  if (!network) {
    std::fputs(complaints.text().c_str(), stderr);
    return plan_bad_input;
  }
  fabric::PlanOptions options;
  if (command.no_failures) options.failures = fabric::FailureScope::none;
  const auto plan = fabric::plan_network(*network, options);
  const auto text = report(plan, command.format);
  if (command.output.empty() || command.output == "-") {
    if (print_out("plan", text, 0, plan_not_written) != 0) return plan_not_written;
  } else if (const auto trouble = write_whole_file(command.output, text); !trouble.empty()) {
    return complain("plan", trouble, plan_not_written);
  }
  const bool faulty = plan.has(fabric::Severity::fault);
  // On the terminal the report shows the faults; if the report goes elsewhere, standard error shows them.
  if (command.format != "table" || !command.output.empty())
    for (const auto& finding : plan.findings)
      if (finding.severity != fabric::Severity::note) std::fputs(fabric::text(finding).c_str(), stderr);
  if (!command.sonic_directory.empty()) {
    if (faulty)
      return complain("plan", "no config_db.json is written for a network with faults", plan_unsafe);
    if (const auto status = write_sonic(plan, command.sonic_directory)) return status;
  }
  return faulty || (command.strict && plan.has(fabric::Severity::warning)) ? plan_unsafe : 0;
}

}  // namespace

int plan(std::span<const std::string> arguments) {
  PlanCommand command;
  CLI::App app(plan_description, "weir plan");
  app.footer(plan_footer);
  auto* file = app.add_option("NETWORK", command.file, "the network file")->type_name("FILE");
  app.add_option("-f,--format", command.format, "table (default), json or html")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "json", "html"}).description(""));
  app.add_option("-o,--output", command.output, "write the report to this file instead of standard output")
      ->type_name("FILE");
  app.add_option("--sonic", command.sonic_directory, "write DIR/SWITCH/config_db.json for each switch")
      ->type_name("DIR");
  app.add_flag("--strict", command.strict, "exit with 1 on warnings, too");
  app.add_flag("--no-failures", command.no_failures, "do not look for deadlocks after failed links");
  app.add_flag("--models", command.models, "list the built-in switch models, and exit");
  if (const auto ended = parse_words(app, "plan", arguments)) return *ended;
  if (command.models) return list_models();
  if (file->count() == 0) return complain("plan", "which network? see weir plan --help", plan_misused);
  return run_plan(command);
}

}  // namespace weir::command
