#include <fmt/format.h>

#include "cli/json_text.hpp"
#include "cli/weir/stat/counter_list.hpp"
#include "cli/weir/stat/stat_text.hpp"
#include "metrics/prometheus.hpp"

namespace weir::command {
namespace {

void write_counters(JsonText& json, const CountersSeen& counters) {
  json.key("counters").begin_object();
  for (const CounterRow& row : counter_list) json.key(row.json).number(counters.*row.counter);
  json.end();
}

void write_rates(JsonText& json, const CountersSeen& now, const CountersSeen& before, double seconds) {
  json.key("per_second").begin_object();
  for (const CounterRow& row : counter_list) {
    const double counted = static_cast<double>(now.*row.counter) - static_cast<double>(before.*row.counter);
    json.key(row.json).number(counted / seconds, 1);
  }
  json.end();
}

void write_queue_pair(JsonText& json, const WatchedQueuePair& qp) {
  json.line(4).begin_object().key("number").number(qp.number).key("peer").number(qp.peer_number);
  json.key("peer_address").text(qp.peer_address).key("type").text(qp.type).key("state").text(qp.state);
  write_counters(json.line(5), qp.counters);
  json.end();
}

}  // namespace

std::string as_json(const Sample& now, const Sample* before) {
  const double seconds = before != nullptr ? std::chrono::duration<double>(now.at - before->at).count() : 0;
  JsonText json;
  json.begin_object().key("silent").number(now.silent).key("seconds").number(seconds, 3);
  json.key("processes").begin_array();
  for (const WatchedProcess& process : now.processes) {
    json.line(2).begin_object().key("pid").number(process.pid).key("command").text(process.command);
    write_counters(json.key("slot").number(process.slot).line(3), process.sums);
    if (before != nullptr)
      for (const WatchedProcess& was : before->processes)
        if (was.incarnation == process.incarnation)
          write_rates(json.line(3), process.sums, was.sums, seconds);
    json.line(3).key("queue_pairs").begin_array();
    for (const WatchedQueuePair& qp : process.queue_pairs) write_queue_pair(json, qp);
    json.end().end();
  }
  return json.end().end().take() + "\n";
}

// By process, without its queue pairs: their numbers come and go, and each would be a series for ever.
std::string as_prometheus(const Sample& sample) {
  using Type = metrics::PrometheusText::Type;
  metrics::PrometheusText text;
  const auto labels_of = [](const WatchedProcess& process) {
    return metrics::Labels("pid", std::to_string(process.pid)).add("command", process.command);
  };
  std::string_view last;
  for (const CounterRow& row : counter_list) {
    if (last != row.prometheus)
      text.metric(fmt::format("weir_{}_total", row.prometheus), Type::counter, row.help);
    last = row.prometheus;
    for (const WatchedProcess& process : sample.processes)
      text.sample(process.sums.*row.counter, labels_of(process).add_formatted(row.label));
  }
  text.metric("weir_queue_pairs", Type::gauge, "Queue pairs that exist.");
  for (const WatchedProcess& process : sample.processes)
    text.sample(process.queue_pairs.size(), labels_of(process));
  return text.take();
}

}  // namespace weir::command
