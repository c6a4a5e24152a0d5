// `weir seeds`: runs a program on the weak NIC with many seeds, until one makes it fail; then finds out which
// weakness that takes.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "cli/json_text.hpp"
#include "cli/weir/command.hpp"
#include "cli/weir/launch/launch.hpp"
#include "cli/weir/seeds/shrink.hpp"
#include "cli/weir/seeds/weak_runs.hpp"
#include "screen/terminal.hpp"

namespace weir::command {
namespace {

using rnic::weak::Plan;
using rnic::weak::Weakness;
using rnic::weak::WeaknessRow;

constexpr std::string_view help = R"(Usage: weir seeds [N] [OPTIONS] [--] COMMAND [ARG...]

Runs COMMAND N times (default 100) on a weak NIC (weir run --weak): one that does whatever devices may do and
usually do not, by choices that follow from a seed. A right program cannot notice. At the first seed with which
COMMAND ends with anything but 0, or does not end, it finds out which weakness makes it fail, and why that is one.

    $ weir seeds 200 -- ./my_test
    $ weir seeds 50 --check -- sh -c './my_server & ./my_client'

COMMAND must pass without weakness, and check its own results: an assert, an exit status. Its processes are ended
after each run.

Options:
  --from SEED     the first seed (default 1)
  --timeout S     a run that takes longer has failed (default 60 s)
  --weak=WORDS    which weaknesses: -NAME without that one, +NAME with that one, too, NAME,... these only
  --json          print JSON, for programs
  --help          this text
  and those of weir run: --check, --packets, --share-memory, --devices, ... (weir run --help)

Weaknesses (docs/check.md says more):
)";

constexpr std::string_view help_end = R"(
Exit status: 0, all runs passed; 1, one failed; 2, the command line is invalid; 3, the command fails without any
weakness, too.
)";

constexpr int shrink_tries = 3;

struct Settings {
  std::uint64_t runs = 100, from = 1;
  std::chrono::seconds limit{60};
  std::string words;  // as of Plan, without the seed
  bool json = false;
};

struct Failure {
  Plan plan;
  RunEnded run;
  Needed needed;
};

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

void print_help() {
  std::string text(help);
  for (const WeaknessRow& row : rnic::weak::table)
    text += fmt::format("  {:<15} {}{}\n", row.name, row.what, row.level == 1 ? "" : "; off unless named");
  text += help_end;
  screen::print_wrapped(stdout, text);
}

Plan plan_of(const Settings& settings, std::uint64_t seed) {
  const std::string words = settings.words.empty() ? "" : "," + settings.words;
  return *rnic::weak::read_plan(std::to_string(seed) + words);
}

std::string command_of(const Launch& launch) {
  std::string text;
  for (const std::string& word : launch.command) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-+=./:,@%") == std::string::npos;
    std::string quoted = word;
    for (std::size_t at = 0; !plain && (at = quoted.find('\'', at)) != std::string::npos; at += 4)
      quoted.replace(at, 1, "'\\''");
    text += " " + (plain ? word : "'" + quoted + "'");
  }
  return text;
}

// With the one weakness that it needs, else with those that it needs together.
Plan plan_to_repeat(const Failure& failure) {
  Plan plan = failure.plan;
  if (!failure.needed.alone.empty()) plan.weaknesses = bit(failure.needed.alone.front());
  if (failure.needed.together.empty()) return plan;
  plan.weaknesses = 0;
  for (const Weakness weakness : failure.needed.together) plan.weaknesses |= bit(weakness);
  return plan;
}

std::string command_to_repeat(const Launch& launch, const Failure& failure) {
  return fmt::format("weir run{} --weak={} --{}", launch.check ? " --check" : "",
                     rnic::weak::text_of(plan_to_repeat(failure)), command_of(launch));
}

const std::vector<Weakness>& named(const Needed& needed) {
  return needed.alone.empty() ? needed.together : needed.alone;
}

std::string names_of(const std::vector<Weakness>& weaknesses) {
  std::string names;
  for (const Weakness weakness : weaknesses)
    names += (names.empty() ? "" : ", ") + std::string(row_of(weakness).name);
  return names;
}

std::string report_of(const Launch& launch, const Settings& settings, const Failure& failure) {
  std::string text =
      fmt::format("With seed {} it fails: {}\n", failure.plan.seed, text_of(failure.run, settings.limit));
  for (const std::string& line : failure.run.last_lines) text += "    | " + line + "\n";
  const Needed& needed = failure.needed;
  if (named(needed).empty())
    text += fmt::format("It did not fail again in {} runs with that seed: it depends on time, too.\n",
                        shrink_tries);
  else if (needed.alone.size() == 1 || needed.together.size() == 1)
    text += fmt::format("It takes one weakness: {}\n", names_of(named(needed)));
  else if (needed.alone.empty())
    text += fmt::format("It takes these weaknesses together: {}\n", names_of(needed.together));
  else
    text += fmt::format("It takes one of these weaknesses: {}\n", names_of(needed.alone));
  for (const Weakness weakness : named(needed)) {
    const WeaknessRow& row = row_of(weakness);
    text += fmt::format("  {}: the NIC {}\n    Why it may: {}\n    Repair:     {}\n", row.name, row.what,
                        row.clause, row.repair);
  }
  return text + "Again:\n    " + command_to_repeat(launch, failure) + "\n";
}

std::string json_of(const Launch& launch, const Settings& settings, std::uint64_t passed,
                    const Failure* failure) {
  JsonText json;
  json.begin_object().key("passed").number(passed).key("from").number(settings.from).key("failed");
  if (failure == nullptr) return json.begin_array().end().end().take() + "\n";
  json.begin_array().begin_object().key("seed").number(failure->plan.seed);
  json.key("ended").text(text_of(failure->run, settings.limit)).key("output").begin_array();
  for (const std::string& line : failure->run.last_lines) json.text(line);
  json.end().key("alone").boolean(!failure->needed.alone.empty()).key("weaknesses").begin_array();
  for (const Weakness weakness : named(failure->needed)) {
    const WeaknessRow& row = row_of(weakness);
    json.begin_object().key("name").text(row.name).key("what").text(row.what).key("why").text(row.clause);
    json.key("repair").text(row.repair).end();
  }
  json.end().key("again").text(command_to_repeat(launch, *failure));
  return json.end().end().end().take() + "\n";
}

// On a terminal, which seed runs.
void show(const std::string& what) {
  if (::isatty(STDERR_FILENO)) fmt::print(stderr, "\r\x1b[K{}", what);
}

void annotate(const Launch& launch, const Failure& failure) {
  if (std::getenv("GITHUB_ACTIONS") == nullptr) return;
  fmt::print(stderr, "::error title=weir seeds: {}::seed {} makes it fail; again: {}\n",
             names_of(named(failure.needed)), failure.plan.seed, command_to_repeat(launch, failure));
}

int run_seeds(const Launch& launch, const Settings& settings) {
  show("without weakness");
  const RunEnded plain = run_once(launch, std::nullopt, settings.limit);
  if (!plain.passed()) {
    show("");
    for (const std::string& line : plain.last_lines) fmt::print(stderr, "    | {}\n", line);
    return complain("seeds", "the command fails without any weakness, too: " + text_of(plain, settings.limit),
                    3);
  }
  for (std::uint64_t i = 0; i < settings.runs; ++i) {
    const Plan plan = plan_of(settings, settings.from + i);
    show(fmt::format("seed {}, {} of {}", plan.seed, i + 1, settings.runs));
    Failure failure{plan, run_once(launch, plan, settings.limit), {}};
    if (failure.run.passed()) continue;
    failure.needed = shrink(plan, [&](const Plan& smaller) {
      show(fmt::format("seed {} fails; tries {}", plan.seed, rnic::weak::text_of(smaller)));
      for (int tries = 0; tries < shrink_tries; ++tries)
        if (!run_once(launch, smaller, settings.limit).passed()) return true;
      return false;
    });
    show("");
    annotate(launch, failure);
    const std::string text = settings.json ? json_of(launch, settings, i, &failure)
                                           : fmt::format("{} of {} seeds passed.\n", i, settings.runs) +
                                                 report_of(launch, settings, failure);
    return print_out("seeds", text, 1, 1);
  }
  show("");
  const std::string text = settings.json
                               ? json_of(launch, settings, settings.runs, nullptr)
                               : fmt::format("{} of {} seeds passed.\n", settings.runs, settings.runs);
  return print_out("seeds", text, 0, 1);
}

}  // namespace

int seeds(std::span<const std::string> arguments) {
  Settings settings;
  if (!arguments.empty() && read_number(arguments.front(), settings.runs)) arguments = arguments.subspan(1);
  Launch launch;
  std::string from, limit;
  bool weak = false;
  auto options = launch.options();
  std::erase_if(
      options, [](const LaunchOption& option) { return option.name == "--json" || option.name == "--weak"; });
  options.push_back({.name = "--from", .value = &from});
  options.push_back({.name = "--timeout", .value = &limit});
  options.push_back({.name = "--weak", .value = &settings.words, .flag = &weak});
  options.push_back({.name = "--json", .flag = &settings.json});
  const auto command = read_launch_options("seeds", arguments, options, help);
  if (!command) return command.error();
  if (launch.help) {
    print_help();
    return 0;
  }
  launch.command = *command;
  if (launch.command.empty())
    return complain("seeds", "no command given; for example: weir seeds 200 -- ./my_test");
  if (!from.empty() && !read_number(from, settings.from))
    return complain("seeds", "--from wants a seed, a number, not '" + from + "'");
  int seconds = 60;
  if (!limit.empty() && (!read_number(limit, seconds) || seconds < 1 || seconds > 86'400))
    return complain("seeds", "--timeout wants seconds, 1 to 86400, not '" + limit + "'");
  settings.limit = std::chrono::seconds(seconds);
  if (settings.runs == 0) return complain("seeds", "a number of seeds is wanted, 1 or more");
  if (const auto plan = rnic::weak::read_plan("0" + (settings.words.empty() ? "" : "," + settings.words));
      !plan)
    return complain("seeds", "--weak: " + plan.error());
  return run_seeds(launch, settings);
}

}  // namespace weir::command
