#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/weir/stat_text.hpp"

namespace weir::command {
namespace {

using C = CountersSeen;

// A number of the table: a sum of counters, per second when the table shows rates.
struct Column {
  std::string_view title, key;
  bool always_sum;
  std::vector<std::uint64_t C::*> of;
};

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"OPS", "ops", false, {&C::sends, &C::writes, &C::reads, &C::atomics, &C::local_operations}},
      {"SEND", "send", false, {&C::sends}},
      {"WRITE", "write", false, {&C::writes}},
      {"READ", "read", false, {&C::reads}},
      {"ATOM", "atomic", false, {&C::atomics}},
      {"RECV", "recv", false, {&C::receives}},
      {"SERVE", "served", false, {&C::sends_served, &C::writes_served, &C::reads_served, &C::atomics_served}},
      {"OUT B", "out", false, {&C::bytes_out, &C::served_bytes_out}},
      {"IN B", "in", false, {&C::bytes_back, &C::served_bytes_in, &C::datagram_bytes_in}},
      {"BELL", "bell", false, {&C::doorbells, &C::receive_doorbells}},
      {"COMPL", "compl", false, {&C::send_completions, &C::receives}},
      {"WAKE", "wake", false, {&C::own_wakeups, &C::receive_wakeups}},
      {"RNR", "rnr", true, {&C::rnrs}},
      {"RETRY", "retry", true, {&C::retries}},
      {"ERROR",
       "error",
       true,
       {&C::send_errors, &C::receive_errors, &C::sends_flushed, &C::receives_flushed, &C::datagrams_dropped}},
  };
  return all;
}

std::uint64_t sum(const Column& column, const C& counters) {
  std::uint64_t total = 0;
  for (const auto member : column.of) total += counters.*member;
  return total;
}

struct Row {
  std::vector<double> numbers;  // by column
};

// A counter never goes back; where it seems to, number or slot are somebody else's now, and all of it is new.
Row row_of(const C& now, const C* before, double seconds) {
  Row row;
  for (const Column& column : columns()) {
    const std::uint64_t value = sum(column, now);
    const std::uint64_t was = before != nullptr ? sum(column, *before) : 0;
    const bool rate = seconds > 0 && !column.always_sum;
    row.numbers.push_back(rate ? static_cast<double>(value >= was ? value - was : value) / seconds
                               : static_cast<double>(value));
  }
  return row;
}

std::string numbers_of(const Row& row) {
  std::string text;
  for (const double number : row.numbers) text += fmt::format(" {:>5}", short_number(number));
  return text;
}

struct Line {
  const WatchedProcess* process;
  Row row;
  std::vector<std::pair<const WatchedQueuePair*, Row>> queue_pairs;
};

const WatchedProcess* same(const WatchedProcess& process, const Sample* in) {
  if (in == nullptr) return nullptr;
  const auto found = std::ranges::find(in->processes, process.incarnation, &WatchedProcess::incarnation);
  return found != in->processes.end() ? &*found : nullptr;
}

const WatchedQueuePair* same(const WatchedQueuePair& qp, const WatchedProcess* in) {
  if (in == nullptr) return nullptr;
  const auto found = std::ranges::find(in->queue_pairs, qp.number, &WatchedQueuePair::number);
  return found != in->queue_pairs.end() ? &*found : nullptr;
}

Line line_of(const WatchedProcess& process, const Sample* before, double seconds) {
  const WatchedProcess* const was = same(process, before);
  Line line{&process, row_of(process.sums, was ? &was->sums : nullptr, seconds), {}};
  for (const WatchedQueuePair& qp : process.queue_pairs) {
    const WatchedQueuePair* const qp_was = same(qp, was);
    line.queue_pairs.emplace_back(&qp, row_of(qp.counters, qp_was ? &qp_was->counters : nullptr, seconds));
  }
  return line;
}

// Largest first; what is equal stays in the order of slots and numbers.
void sort_by(std::vector<Line>& lines, const std::string& key) {
  if (key == "pid") std::ranges::stable_sort(lines, {}, [](const Line& l) { return l.process->pid; });
  if (key == "command") std::ranges::stable_sort(lines, {}, [](const Line& l) { return l.process->command; });
  const auto at =
      static_cast<std::size_t>(std::ranges::find(columns(), key, &Column::key) - columns().begin());
  if (at == columns().size()) return;
  std::ranges::stable_sort(lines, std::greater{}, [&](const Line& l) { return l.row.numbers[at]; });
  for (Line& line : lines)
    std::ranges::stable_sort(line.queue_pairs, std::greater{},
                             [&](const auto& qp) { return qp.second.numbers[at]; });
}

std::string process_label(const WatchedProcess& process) {
  const std::string pid = process.pid != 0 ? std::to_string(process.pid) : "-";
  return fmt::format("{:>7} {:<15.15} {:>8}", pid, process.command,
                     fmt::format("{} QP", process.queue_pairs.size()));
}

std::string queue_pair_label(const WatchedQueuePair& qp) {
  const std::string peer = qp.peer_number != 0 ? fmt::format(">{:x}", qp.peer_number) : "";
  return fmt::format("  {:6x}{:<7} {:<11} {:<5}", qp.number, peer, qp.type, qp.state);
}

// What went to another host and came from there, in all; nothing, where none did.
std::string packets_line(const WatchedQueuePair& qp) {
  const C& c = qp.counters;
  if (qp.peer_address.empty() && c.packets_out + c.packets_in == 0) return "";
  const auto number = [](std::uint64_t value) { return short_number(static_cast<double>(value)); };
  return fmt::format(
      "    packets{}{}: {} out, {} in, {} sent again, {} repeated by the peer, {} NAK, {} RNR NAK, {} "
      "dropped",
      qp.peer_address.empty() ? "" : " to ", qp.peer_address, number(c.packets_out), number(c.packets_in),
      number(c.packets_resent), number(c.packets_repeated), number(c.naks_in + c.naks_out),
      number(c.rnr_naks_in + c.rnr_naks_out), number(c.packets_dropped));
}

}  // namespace

std::vector<std::string_view> sort_keys() {
  std::vector<std::string_view> keys = {"pid", "command"};
  for (const Column& column : columns()) keys.push_back(column.key);
  return keys;
}

std::string short_number(double value) {
  if (value > 0 && value < 1) return value < 0.05 ? "0" : fmt::format("{:.1f}", value);
  if (value < 999.5) return fmt::format("{:.0f}", value);
  constexpr std::array suffixes = {'k', 'M', 'G', 'T', 'P', 'E'};
  std::size_t power = 0;
  for (value /= 1000; value >= 999.5 && power + 1 < suffixes.size(); ++power) value /= 1000;
  return fmt::format("{:.{}f}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, suffixes[power]);
}

std::string as_table(const Sample& now, const Sample* before, const TableWish& wish) {
  const double seconds = before != nullptr ? std::chrono::duration<double>(now.at - before->at).count() : 0;
  std::vector<Line> lines;
  std::size_t queue_pairs = 0;
  for (const WatchedProcess& process : now.processes) {
    lines.push_back(line_of(process, before, seconds));
    queue_pairs += process.queue_pairs.size();
  }
  sort_by(lines, wish.sort);

  std::vector<std::string> text;
  text.push_back(fmt::format("{} process{}, {} queue pair{}; {}{}", lines.size(),
                             lines.size() == 1 ? "" : "es", queue_pairs, queue_pairs == 1 ? "" : "s",
                             before != nullptr ? "per second (RNR, RETRY, ERROR: in all)" : "in all",
                             now.silent != 0 ? fmt::format("; {} did not answer", now.silent) : ""));
  std::string titles = fmt::format("{:>7} {:<24}", "PID", "COMMAND");
  for (const Column& column : columns()) titles += fmt::format(" {:>5}", column.title);
  text.push_back(titles);
  for (const Line& line : lines) {
    text.push_back(process_label(*line.process) + numbers_of(line.row));
    for (const auto& [qp, row] : line.queue_pairs) {
      if (!wish.queue_pairs) continue;
      text.push_back(queue_pair_label(*qp) + numbers_of(row));
      if (std::string packets = packets_line(*qp); !packets.empty()) text.push_back(std::move(packets));
    }
  }
  if (text.size() > wish.lines && wish.lines > 2) {
    const std::size_t hidden = text.size() - (wish.lines - 1);
    text.resize(wish.lines - 1);
    text.push_back(fmt::format("({} more lines)", hidden));
  }
  return fmt::format("{}\n", fmt::join(text, "\n"));
}

}  // namespace weir::command
