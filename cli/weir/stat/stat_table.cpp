#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>

#include "cli/weir/stat/stat_text.hpp"

namespace weir::command {
namespace {

using C = CountersSeen;

// A number of the table: a sum of counters, per second when the table shows rates.
struct Column {
  std::string_view title, key, what;
  int rank;  // the lower, the narrower is the screen that still has it
  bool always_sum;
  std::vector<std::uint64_t C::*> of;
  std::string_view colour = {};  // where it is not 0
};

constexpr std::string_view in_yellow = "\x1b[33m", in_red = "\x1b[31m", uncoloured = "\x1b[0m";
constexpr std::size_t label_columns = 32, number_columns = 6;

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"OPS",
       "ops",
       "operations completed: SEND, WRITE, READ, atomics, local ones",
       0,
       false,
       {&C::sends, &C::writes, &C::reads, &C::atomics, &C::local_operations}},
      {"SEND", "send", "SENDs", 9, false, {&C::sends}},
      {"WRITE", "write", "WRITEs", 10, false, {&C::writes}},
      {"READ", "read", "READs", 11, false, {&C::reads}},
      {"ATOM", "atomic", "atomics", 14, false, {&C::atomics}},
      {"RECV", "recv", "receives completed", 7, false, {&C::receives}},
      {"SERVE",
       "served",
       "operations that peers did here; a target of RDMA takes no part in them",
       6,
       false,
       {&C::sends_served, &C::writes_served, &C::reads_served, &C::atomics_served}},
      {"OUT B",
       "out",
       "payload bytes that left: sent and written, or read by the peer",
       4,
       false,
       {&C::bytes_out, &C::served_bytes_out}},
      {"IN B",
       "in",
       "payload bytes that came: received and read, or written by the peer",
       5,
       false,
       {&C::bytes_back, &C::served_bytes_in, &C::datagram_bytes_in}},
      {"BELL",
       "bell",
       "doorbells: how often work was announced to the NIC",
       13,
       false,
       {&C::doorbells, &C::receive_doorbells}},
      {"COMPL", "compl", "completions polled", 8, false, {&C::send_completions, &C::receives}},
      {"WAKE",
       "wake",
       "completions that woke a completion channel",
       12,
       false,
       {&C::own_wakeups, &C::receive_wakeups}},
      {"RNR",
       "rnr",
       "messages that found no receive posted, and waited (in all)",
       3,
       true,
       {&C::rnrs},
       in_yellow},
      {"RETRY", "retry", "what was tried again (in all)", 2, true, {&C::retries}, in_yellow},
      {"ERROR",
       "error",
       "work that failed, was flushed or dropped (in all)",
       1,
       true,
       {&C::send_errors, &C::receive_errors, &C::sends_flushed, &C::receives_flushed, &C::datagrams_dropped},
       in_red},
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

// Which columns a screen has room for, in their order: the one sorted by, then by rank.
std::vector<std::size_t> shown_columns(const TableWish& wish) {
  const auto& all = columns();
  const auto rank = [&](std::size_t i) { return all[i].key == wish.sort ? -1 : all[i].rank; };
  std::vector<std::size_t> shown(all.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  std::ranges::sort(shown, {}, rank);
  const std::size_t room = wish.columns > label_columns ? (wish.columns - label_columns) / number_columns : 0;
  if (room < shown.size()) shown.resize(std::max<std::size_t>(room, 1));
  std::ranges::sort(shown);
  return shown;
}

std::string numbers_of(const Row& row, const std::vector<std::size_t>& shown, bool colour) {
  std::string text;
  for (const std::size_t i : shown) {
    const bool marked = colour && row.numbers[i] > 0 && !columns()[i].colour.empty();
    text += fmt::format("{} {:>5}{}", marked ? columns()[i].colour : "", short_number(row.numbers[i]),
                        marked ? uncoloured : "");
  }
  return text;
}

// What the screen has no room for; nothing where it has.
std::string columns_left_out(const std::vector<std::size_t>& shown, std::size_t screen_columns) {
  std::string text;
  for (std::size_t i = 0; i < columns().size(); ++i)
    if (std::ranges::find(shown, i) == shown.end()) text += fmt::format(" {}", columns()[i].title);
  return text.empty() ? text : fmt::format("(no room in {} columns:{})", screen_columns, text);
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

// A process names itself, also with what a terminal would obey.
std::string printable(std::string name) {
  std::ranges::replace_if(name, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return name;
}

std::string process_label(const WatchedProcess& process) {
  const std::string pid = process.pid != 0 ? std::to_string(process.pid) : "-";
  return fmt::format("{:>7} {:<15.15} {:>8}", pid, printable(process.command),
                     fmt::format("{} QP", process.queue_pairs.size()));
}

std::string queue_pair_label(const WatchedQueuePair& qp) {
  const std::string peer = qp.peer_number != 0 ? fmt::format(">{:x}", qp.peer_number) : "";
  return fmt::format(" {:6x}{:<7} {:<11} {:<5}", qp.number, peer, qp.type, qp.state);
}

using Counted = std::pair<std::uint64_t, const char*>;

// A list of counts in lines that fit.
std::vector<std::string> lines_of(const std::string& title, std::span<const Counted> parts,
                                  std::size_t screen_columns) {
  std::vector<std::string> lines = {title};
  for (const auto& [count, what] : parts) {
    const bool last = &what == &parts.back().second;
    const std::string part =
        fmt::format(" {} {}{}", short_number(static_cast<double>(count)), what, last ? "" : ",");
    if (lines.back().size() + part.size() > screen_columns) lines.emplace_back("     ");
    lines.back() += part;
  }
  return lines;
}

// What came to the process and reached no queue pair, by its reason; nothing, where nothing did.
std::vector<std::string> drops_lines(const C& c, std::size_t screen_columns) {
  const Counted reasons[] = {{c.dropped_malformed, "malformed"},
                             {c.dropped_wrong_icrc, "wrong ICRC"},
                             {c.dropped_no_process, "for no process"},
                             {c.dropped_no_queue_pair, "for no queue pair"},
                             {c.dropped_wrong_source, "wrong source"},
                             {c.dropped_wrong_qkey, "wrong Q_Key"},
                             {c.dropped_outside_window, "PSN outside the window"},
                             {c.dropped_over_budget, "over budget"},
                             {c.dropped_unproved, "unproved requests"},
                             {c.dropped_wrong_key, "wrong key"},
                             {c.dropped_by_kernel, "by the kernel"}};
  std::vector<Counted> parts;
  std::ranges::copy_if(reasons, std::back_inserter(parts), [](const Counted& one) { return one.first != 0; });
  if (parts.empty()) return {};
  return lines_of("    dropped:", parts, screen_columns);
}

// What went to another host and came from there, in all; nothing, where none did.
std::vector<std::string> packets_lines(const WatchedQueuePair& qp, std::size_t screen_columns) {
  const C& c = qp.counters;
  if (qp.peer_address.empty() && c.packets_out + c.packets_in == 0) return {};
  const Counted parts[] = {{c.packets_out, "out"},           {c.packets_in, "in"},
                           {c.packets_resent, "sent again"}, {c.packets_repeated, "repeated by the peer"},
                           {c.naks_in + c.naks_out, "NAK"},  {c.rnr_naks_in + c.rnr_naks_out, "RNR NAK"},
                           {c.cnps_in + c.cnps_out, "CNP"},  {c.packets_dropped, "dropped"}};
  return lines_of(fmt::format("    packets{}{}:", qp.peer_address.empty() ? "" : " to ", qp.peer_address),
                  parts, screen_columns);
}

// Cuts `text`, two lines of titles and a body, to `room` lines, of which the last one says what is hidden.
void scroll(std::vector<std::string>& text, std::size_t room, std::size_t& first) {
  constexpr std::size_t titles = 2;
  if (text.size() <= room || room <= titles + 1) {
    first = 0;
    return;
  }
  const std::size_t body = text.size() - titles, shown = room - titles - 1;
  first = std::min(first, body - shown);
  const auto begin = text.begin() + titles;
  text.erase(begin, begin + static_cast<std::ptrdiff_t>(first));
  text.resize(titles + shown);
  const std::size_t below = body - first - shown;
  text.push_back(first == 0 ? fmt::format("({} more lines)", below)
                            : fmt::format("(lines: {} above, {} below)", first, below));
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

std::string columns_explained() {
  std::string text;
  for (const Column& column : columns()) text += fmt::format("  {:<6} {}\n", column.title, column.what);
  return text;
}

double operations_per_second(const Sample& now, const Sample& before) {
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  double all = 0;
  for (const WatchedProcess& process : now.processes)
    if (seconds > 0) all += line_of(process, &before, seconds).row.numbers[0];
  return all;
}

std::string as_table(const Sample& now, const Sample* before, const TableWish& wish) {
  TableWish whole = wish;
  return as_screen(now, before, whole);
}

std::string as_screen(const Sample& now, const Sample* before, TableWish& wish) {
  const double seconds = before != nullptr ? std::chrono::duration<double>(now.at - before->at).count() : 0;
  std::vector<Line> lines;
  std::size_t queue_pairs = 0;
  for (const WatchedProcess& process : now.processes) {
    lines.push_back(line_of(process, before, seconds));
    queue_pairs += process.queue_pairs.size();
  }
  sort_by(lines, wish.sort);
  const auto shown = shown_columns(wish);

  std::vector<std::string> text;
  text.push_back(fmt::format("{} process{}, {} queue pair{}; {}{}", lines.size(),
                             lines.size() == 1 ? "" : "es", queue_pairs, queue_pairs == 1 ? "" : "s",
                             before != nullptr ? "per second (RNR, RETRY, ERROR: in all)" : "in all",
                             now.silent != 0 ? fmt::format("; {} did not answer", now.silent) : ""));
  std::string titles = fmt::format("{:>7} {:<24}", "PID", "COMMAND");
  for (const std::size_t i : shown) titles += fmt::format(" {:>5}", columns()[i].title);
  text.push_back(titles);
  for (const Line& line : lines) {
    text.push_back(process_label(*line.process) + numbers_of(line.row, shown, wish.colour));
    std::ranges::move(drops_lines(line.process->sums, wish.columns), std::back_inserter(text));
    for (const auto& [qp, row] : line.queue_pairs) {
      if (!wish.queue_pairs) continue;
      text.push_back(queue_pair_label(*qp) + numbers_of(row, shown, wish.colour));
      std::ranges::move(packets_lines(*qp, wish.columns), std::back_inserter(text));
    }
  }
  const std::string left_out = columns_left_out(shown, wish.columns);
  const std::size_t room = wish.lines - (left_out.empty() ? 0 : 1);
  scroll(text, room, wish.first);
  if (!left_out.empty()) text.push_back(left_out);
  return fmt::format("{}\n", fmt::join(text, "\n"));
}

}  // namespace weir::command
