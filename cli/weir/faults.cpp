// `weir faults`: checks a file of faults for `weir run --faults`, and lists what can be written there.
#include <fmt/core.h>

#include <cstdio>

#include "cli/json_text.hpp"
#include "cli/weir/command.hpp"
#include "cli/weir/whole_file.hpp"
#include "faults/conditions.hpp"
#include "faults/kinds_of_faults.hpp"
#include "faults/language.hpp"
#include "faults/packet_kinds.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {
namespace {

constexpr std::string_view help = R"(Usage: weir faults check [--json] FILE
       weir faults list [--json]

What `weir run` makes go wrong on purpose is a file of faults, one a line:

  seed 42
  drop qp=1 psn=5                        # the sixth packet of the program's first queue pair, once
  delay 80us opcode=ack rate=10%         # a tenth of its acknowledgements comes late

  check          read FILE ('-': standard input) and show its faults, or the line and the word that is wrong
  list           the kinds of faults and the conditions, with one example each
  --json         print JSON, for programs
  --help         this text

Exit status: 0; 1 the file has a mistake or cannot be read; 2 the command line is invalid.
)";

// An array of {name, what, example}.
template <typename Items>
void add_items(JsonText& json, std::string_view key, const Items& items) {
  json.line(2).key(key).begin_array();
  for (const auto& item : items) {
    json.line(4).begin_object().key("name").text(item.name).key("what").text(item.what);
    json.key("example").text(item.example).end();
  }
  json.line(2).end();
}

std::string list_as_json() {
  JsonText json;
  json.begin_object();
  add_items(json, "faults", faults::kinds_of_faults());
  add_items(json, "conditions", faults::conditions());
  json.line(2).key("opcodes").begin_array();
  for (const auto& kind : faults::packet_kinds())
    json.line(4).begin_object().key("name").text(kind.name).key("what").text(kind.what).end();
  json.line(2).end().line(0);
  return json.end().take() + "\n";
}

std::string list_for_people() {
  std::string text = "Faults:\n";
  for (const auto& kind : faults::kinds_of_faults())
    text += fmt::format("  {:<30} {}\n", kind.example, kind.what);
  text += "\nConditions, each at most once:\n";
  for (const auto& condition : faults::conditions())
    text += fmt::format("  {:<30} {}\n", condition.example, condition.what);
  text += "\nopcode= knows:\n";
  for (const auto& kind : faults::packet_kinds()) text += fmt::format("  {:<30} {}\n", kind.name, kind.what);
  return text + "\n'seed N' chooses other packets for rate=; what follows a # is a remark.\n";
}

std::string mistake_as_json(const faults::Mistake& mistake) {
  JsonText json;
  json.begin_object().key("line").number(mistake.line).key("word").text(mistake.word);
  return json.key("error").text(mistake.what).end().take() + "\n";
}

std::string plan_as_json(const faults::Plan& plan) {
  JsonText json;
  json.begin_object().key("seed").number(plan.seed).key("faults").begin_array();
  for (const auto& fault : plan.faults)
    json.line(2).begin_object().key("line").number(fault.line).key("fault").text(fault.text).end();
  if (!plan.faults.empty()) json.line(0);
  return json.end().end().take() + "\n";
}

std::string plan_for_people(const faults::Plan& plan) {
  std::string text =
      fmt::format("seed {}, {} fault{}\n", plan.seed, plan.faults.size(), plan.faults.size() == 1 ? "" : "s");
  for (const auto& fault : plan.faults) text += fmt::format("  line {}: {}\n", fault.line, fault.text);
  return text;
}

int check(const std::string& file, bool json) {
  const auto text = file == "-" ? read_standard_input() : read_whole_file(file);
  if (!text) return complain("faults", text.error(), 1);
  const auto plan = faults::read_plan(*text);
  if (plan) return print_out("faults", json ? plan_as_json(*plan) : plan_for_people(*plan), 0, 1);
  if (json) return print_out("faults", mistake_as_json(plan.error()), 1, 1);
  return complain("faults", file + ": " + faults::text_of(plan.error()), 1);
}

}  // namespace

int faults(std::span<const std::string> arguments) {
  bool json = false;
  std::vector<std::string> words;
  for (const std::string& word : arguments) {
    if (word == "--help" || word == "-h") return print_help("faults", help, 1);
    if (word == "--json")
      json = true;
    else if (word.size() > 1 && word.starts_with('-'))
      return complain("faults", option_complaint(word, help) + "; see weir faults --help");
    else
      words.push_back(word);
  }
  constexpr std::string_view known[] = {"check", "list"};
  if (words.empty()) return complain("faults", "it wants 'check FILE' or 'list'; see weir faults --help");
  if (words.front() == "list" && words.size() == 1)
    return print_out("faults", json ? list_as_json() : list_for_people(), 0, 1);
  if (words.front() == "check" && words.size() == 2) return check(words[1], json);
  if (words.front() == "check" || words.front() == "list")
    return complain("faults", "'" + words.front() + "' wants " +
                                  (words.front() == "check" ? "one file" : "no further word") +
                                  "; see weir faults --help");
  return complain("faults", "it does not know '" + words.front() + "'" + did_you_mean(words.front(), known) +
                                "; see weir faults --help");
}

}  // namespace weir::command
