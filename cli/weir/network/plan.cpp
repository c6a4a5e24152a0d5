// `weir plan`: turns a network file into headroom, marks, warnings, pictures and configuration.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <set>
#include <tuple>
#include <vector>

#include "cli/weir/command.hpp"
#include "cli/weir/parse_words.hpp"
#include "cli/weir/whole_file.hpp"
#include "fabric/plan/config_difference.hpp"
#include "fabric/plan/plan_network.hpp"
#include "fabric/plan/report.hpp"
#include "fabric/plan/sonic_config.hpp"
#include "fabric/topology/cabling.hpp"
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
    "  weir plan network.toml --diff running                 what that would change in "
    "running/SWITCH/config_db.json\n"
    "  weir plan --import running/*/config_db.json -o network.toml    the network file, from what switches "
    "know\n"
    "  weir plan --models                                    the built-in switch models\n\n"
    "Exit status: 0 planned, also with warnings; 1 the planned network can lose packets or deadlock (with "
    "--strict: or\n"
    "has a warning); 2 the command line is invalid; 3 the network file is invalid; 4 the output cannot be "
    "written.";

struct PlanCommand {
  std::string file, format = "table", output, sonic_directory, diff_directory;
  std::vector<std::string> imported;
  fabric::CablingDefaults defaults;
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
  std::set<std::string> remarks;
  for (const auto& kind : plan.switches) remarks.insert(fabric::sonic_remark(kind));
  for (const auto& remark : remarks)
    if (!remark.empty()) fmt::print(stderr, "weir plan: {}\n", remark);
  return 0;
}

// Prints what the plan would change in DIR/SWITCH/config_db.json. Reads every file before it prints anything.
int print_difference(const fabric::Plan& plan, const std::string& directory) {
  std::string out;
  for (const auto& kind : plan.switches)
    for (const auto node : kind.switches) {
      const auto& name = (*plan.network)[node].name;
      const auto path = (fs::path(directory) / name / "config_db.json").string();
      const auto existing = read_whole_file(path);
      if (!existing) return complain("plan", existing.error(), plan_bad_input);
      const auto lines = fabric::config_difference(fabric::sonic_config(plan, kind, node), *existing);
      if (!lines) return complain("plan", path + " is not a JSON object", plan_bad_input);
      for (const auto& line : *lines) out += fmt::format("{}: {}\n", name, line);
    }
  return print_out("plan", out, 0, plan_not_written);
}

int run_import(const PlanCommand& command) {
  fabric::Cabling cabling;
  fabric::Complaints complaints;
  for (const auto& path : command.imported) {
    const auto text = read_whole_file(path);
    if (!text) return complain("plan", text.error(), plan_bad_input);
    fabric::read_cabling(*text, path, cabling, complaints);
  }
  if (!complaints.none()) {
    std::fputs(complaints.text().c_str(), stderr);
    return plan_bad_input;
  }
  cabling.guess_hosts();
  const auto text = fabric::network_file(cabling, command.defaults);
  if (command.output.empty() || command.output == "-") return print_out("plan", text, 0, plan_not_written);
  const auto trouble = write_whole_file(command.output, text);
  return trouble.empty() ? 0 : complain("plan", trouble, plan_not_written);
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
  if (!command.diff_directory.empty()) {
    for (const auto& finding : plan.findings)
      if (finding.severity == fabric::Severity::fault) std::fputs(fabric::text(finding).c_str(), stderr);
    if (plan.has(fabric::Severity::fault))
      return complain("plan", "a network with faults has no configuration to compare", plan_unsafe);
    return print_difference(plan, command.diff_directory);
  }
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
  app.add_flag_callback(
         "--json", [&command] { command.format = "json"; }, "the same as --format json")
      ->excludes("--format");
  app.add_option("-o,--output", command.output, "write the report to this file instead of standard output")
      ->type_name("FILE");
  app.add_option("--sonic", command.sonic_directory, "write DIR/SWITCH/config_db.json for each switch")
      ->type_name("DIR");
  app.add_option("--diff", command.diff_directory,
                 "print what the plan would change in DIR/SWITCH/config_db.json, and nothing else")
      ->type_name("DIR")
      ->excludes("--sonic");
  auto* imported =
      app.add_option("--import", command.imported,
                     "write a network file from cabling: containerlab, NetBox, LLDP, or config_db.json")
          ->type_name("FILE")
          ->excludes(file);
  for (const auto& [name, value, type, text] :
       {std::tuple("--speed", &command.defaults.speed, "SPEED",
                   "of links whose speed the imported files do not give"),
        std::tuple("--cable", &command.defaults.cable, "LENGTH", "of links whose length they do not give"),
        std::tuple("--model", &command.defaults.model, "MODEL", "of switches whose model they do not give")})
    app.add_option(name, *value, text)->type_name(type)->needs(imported)->capture_default_str();
  app.add_flag("--strict", command.strict, "exit with 1 on warnings, too");
  app.add_flag("--no-failures", command.no_failures, "do not look for deadlocks after failed links");
  app.add_flag("--models", command.models, "list the built-in switch models, and exit");
  if (const auto ended = parse_words(app, "plan", arguments)) return *ended;
  if (command.models) return list_models();
  if (imported->count() != 0) return run_import(command);
  if (file->count() == 0) return complain("plan", "which network? see weir plan --help", plan_misused);
  return run_plan(command);
}

}  // namespace weir::command
