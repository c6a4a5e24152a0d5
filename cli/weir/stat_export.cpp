#include <fmt/format.h>

#include "cli/json_text.hpp"
#include "cli/weir/counter_list.hpp"
#include "cli/weir/stat_text.hpp"

namespace weir::command {
namespace {

std::string json_counters(const CountersSeen& counters) {
  std::string text = "{";
  for (const CounterRow& row : counter_list)
    text += fmt::format("{}\"{}\": {}", text.size() > 1 ? ", " : "", row.json, counters.*row.counter);
  return text + "}";
}

std::string json_rates(const CountersSeen& now, const CountersSeen& before, double seconds) {
  std::string text = "{";
  for (const CounterRow& row : counter_list) {
    const double counted = static_cast<double>(now.*row.counter) - static_cast<double>(before.*row.counter);
    text += fmt::format("{}\"{}\": {:.1f}", text.size() > 1 ? ", " : "", row.json, counted / seconds);
  }
  return text + "}";
}

// Escaped as the format wants it in a label's value.
std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string as_json(const Sample& now, const Sample* before) {
  const double seconds = before != nullptr ? std::chrono::duration<double>(now.at - before->at).count() : 0;
  std::string text =
      fmt::format("{{\"silent\": {}, \"seconds\": {:.3f}, \"processes\": [", now.silent, seconds);
  bool first = true;
  for (const WatchedProcess& process : now.processes) {
    text += fmt::format("{}\n  {{\"pid\": {}, \"command\": {}, \"slot\": {},\n   \"counters\": {}",
                        first ? "" : ",", process.pid, json_string(process.command), process.slot,
                        json_counters(process.sums));
    first = false;
    if (before != nullptr)
      for (const WatchedProcess& was : before->processes)
        if (was.incarnation == process.incarnation)
          text += fmt::format(",\n   \"per_second\": {}", json_rates(process.sums, was.sums, seconds));
    text += ",\n   \"queue_pairs\": [";
    for (std::size_t i = 0; i < process.queue_pairs.size(); ++i) {
      const WatchedQueuePair& qp = process.queue_pairs[i];
      text += fmt::format(
          "{}\n    {{\"number\": {}, \"peer\": {}, \"peer_address\": \"{}\", \"type\": \"{}\", \"state\": "
          "\"{}\",\n     \"counters\": {}}}",
          i != 0 ? "," : "", qp.number, qp.peer_number, qp.peer_address, qp.type, qp.state,
          json_counters(qp.counters));
    }
    text += "]}";
  }
  return text + "]}\n";
}

// By process, without its queue pairs: their numbers come and go, and each would be a series for ever.
std::string as_prometheus(const Sample& sample) {
  std::string text;
  std::string_view last;
  for (const CounterRow& row : counter_list) {
    if (last != row.prometheus)
      text +=
          fmt::format("# HELP weir_{0}_total {1}\n# TYPE weir_{0}_total counter\n", row.prometheus, row.help);
    last = row.prometheus;
    for (const WatchedProcess& process : sample.processes)
      text += fmt::format("weir_{}_total{{pid=\"{}\",command=\"{}\"{}{}}} {}\n", row.prometheus, process.pid,
                          label_value(process.command), *row.label != 0 ? "," : "", row.label,
                          process.sums.*row.counter);
  }
  text += "# HELP weir_queue_pairs Queue pairs that exist.\n# TYPE weir_queue_pairs gauge\n";
  for (const WatchedProcess& process : sample.processes)
    text += fmt::format("weir_queue_pairs{{pid=\"{}\",command=\"{}\"}} {}\n", process.pid,
                        label_value(process.command), process.queue_pairs.size());
  return text;
}

}  // namespace weir::command
