#include "twin/scenario.hpp"

#include <algorithm>

namespace weir::twin {
namespace {

using fabric::Range;
using fabric::Table;
using fabric::Unit;
using fabric::sim::from_ns;

constexpr Range any_time{0, fabric::sim::longest_run_ns};
// A 2-byte ping over two NICs and no switch takes 0.8 to 1 us on adapters of 100 Gb/s.
constexpr double default_nic_ns = 400;
constexpr double default_tcp_ns = 20'000;
// So that a program that waits for another's connection finds it listening.
constexpr double start_apart_ns = 1e6;

// Words as a shell splits them, with quotes and backslashes; nothing else of a shell. nullopt: a quote is
// open.
std::optional<std::vector<std::string>> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote)
      quote = 0;
    else if (c == '\\' && quote != '\'' && i + 1 < text.size())
      words.back() += text[++i];
    else
      words.back() += c;
  }
  if (quote != 0) return std::nullopt;
  return words;
}

void read_program(Table& table, std::size_t number, std::vector<Program>& programs) {
  Program program;
  const auto host = table.string("host");
  if (!host && !table.has("host")) table.missing("host", "name the host that it runs on");
  const auto command = table.strings("command");
  if (command.empty()) table.missing("command", "say what to run: command = \"ib_send_lat h1\"");
  if (command.size() == 1) {
    const auto words = words_of(command.front().value);
    if (!words || words->empty())
      table.complain("command", "is no command line", "close its quotes, or write a list of words");
    else
      program.command = *words;
  } else {
    for (const auto& word : command) program.command.push_back(word.value);
  }
  program.host = host.value_or("");
  const auto name = table.string("name");
  program.name = name ? *name : (program.command.empty() ? "" : program.command.front());
  program.start = from_ns(table.quantity("start", Unit::nanoseconds, any_time)
                              .value_or(start_apart_ns * static_cast<double>(number)));
  table.finish();
  programs.push_back(std::move(program));
}

Loss read_loss(Table& table, std::string& host) {
  Loss loss;
  host = table.string("host").value_or("");
  if (host.empty() && !table.has("host")) table.missing("host", "name the host whose packets are lost");
  loss.from = from_ns(table.quantity("from", Unit::nanoseconds, any_time).value_or(0));
  loss.until =
      from_ns(table.quantity("until", Unit::nanoseconds, any_time).value_or(fabric::sim::longest_run_ns));
  loss.rate = table.quantity("rate", Unit::fraction, {0, 1}).value_or(1);
  if (loss.until <= loss.from)
    table.complain("until", "the loss is over before it begins", "a time after `from`");
  table.finish();
  return loss;
}

}  // namespace

std::optional<Scenario> load_scenario(const std::string& path, fabric::Complaints& complaints) {
  Scenario made;
  std::vector<fabric::Place> places, loss_places;
  std::vector<std::string> loss_hosts;
  const auto more = [&](Table& root) {
    auto tables = root.tables("program");
    for (auto& table : tables) {
      places.push_back(table.place("host"));
      read_program(table, made.programs.size(), made.programs);
    }
    for (auto& table : root.tables("loss")) {
      loss_places.push_back(table.place("host"));
      made.losses.push_back(read_loss(table, loss_hosts.emplace_back()));
    }
    if (tables.empty()) root.missing("program", "add a [[program]] with host and command");
    bool holds_back = true;
    double transmit = default_nic_ns, receive = default_nic_ns, tcp = default_tcp_ns;
    if (auto nic = root.table("nic")) {
      transmit = nic->quantity("transmit", Unit::nanoseconds, any_time).value_or(transmit);
      receive = nic->quantity("receive", Unit::nanoseconds, any_time).value_or(receive);
      holds_back = nic->boolean("hold_back").value_or(true);
      nic->finish();
    }
    if (auto table = root.table("tcp")) {
      tcp = table->quantity("latency", Unit::nanoseconds, any_time).value_or(tcp);
      table->finish();
    }
    made.nic = {from_ns(transmit), from_ns(receive), holds_back};
    made.tcp_latency = from_ns(tcp);
  };
  auto network = fabric::sim::load_scenario(path, complaints, more);
  if (!network) return std::nullopt;
  std::vector<std::string> hosts;
  for (const auto& node : network->network->nodes)
    if (node.kind == fabric::NodeKind::host) hosts.push_back(node.name);
  const auto number_of = [&](const std::string& name, const fabric::Place& place, std::uint32_t& number) {
    const auto found = std::ranges::find(hosts, name);
    number = static_cast<std::uint32_t>(found - hosts.begin());
    if (found == hosts.end())
      complaints.add(place, "'" + name + "' is no host", "name a host of the network");
    return found != hosts.end();
  };
  for (std::size_t i = 0; i < made.programs.size(); ++i)
    if (!number_of(made.programs[i].host, places[i], made.programs[i].address)) return std::nullopt;
  for (std::size_t i = 0; i < made.losses.size(); ++i)
    if (!number_of(loss_hosts[i], loss_places[i], made.losses[i].host)) return std::nullopt;
  made.network = std::move(*network);
  return made;
}

}  // namespace weir::twin
