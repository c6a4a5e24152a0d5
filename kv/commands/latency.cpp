// LATENCY: the durations of commands, and the times when the server was busy for long.
#include <absl/container/inlined_vector.h>

#include "kv/call/call.hpp"
#include "kv/clients/slow_work.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/commands/latency_report.hpp"

namespace weir::kv {

namespace {

void latest_events(const Call& call) {
  const auto& events = call.server.slow_work.events.all();
  call.reply.array(events.size());
  for (const auto& [kind, event] : events) {
    call.reply.array(4);
    call.reply.bulk(kind);
    call.reply.integer(event.samples.back().time_s);
    call.reply.integer(event.samples.back().ms);
    call.reply.integer(event.worst_ms);
  }
}
void events_of_kind(const Call& call) {
  const LatencyEvents::Event* event = call.server.slow_work.events.find(call[2]);
  if (event == nullptr) return call.reply.array(0);
  call.reply.array(event->samples.size());
  for (const auto& [time_s, ms] : event->samples) {
    call.reply.array(2);
    call.reply.integer(time_s);
    call.reply.integer(ms);
  }
}
void reset_events(const Call& call) {
  LatencyEvents& events = call.server.slow_work.events;
  if (call.count() == 2) return call.reply.integer(static_cast<std::int64_t>(events.forget_all()));
  std::int64_t forgotten = 0;
  for (const Argument& kind : call.arguments.subspan(2)) forgotten += events.forget(kind.text) ? 1 : 0;
  call.reply.integer(forgotten);
}
void graph(const Call& call) {
  const LatencyEvents::Event* event = call.server.slow_work.events.find(call[2]);
  if (event == nullptr) {
    return call.reply.error("ERR No samples available for event '" + std::string(up_to_zero(call[2])) + "'");
  }
  call.reply.verbatim("txt", latency_graph(call[2], *event, call.now_ms / 1000));
}
void latency_doctor(const Call& call) {
  call.reply.verbatim("txt",
                      latency_report(call.server.slow_work.events, call.server.settings, call.now_ms / 1000));
}

// The boundaries that Redis reports: powers of two of 1024 ns, each extended to the end of its
// bucket, which is 1/128 wide.
constexpr std::uint64_t first_edge_ns = 1024;
constexpr std::uint64_t end_of_bucket(std::uint64_t edge_ns) { return edge_ns + edge_ns / 128 - 1; }

// A time, and how many calls took at most that long.
struct Step {
  std::uint64_t us;
  std::uint64_t calls;
};
using Steps = absl::InlinedVector<Step, 32>;

Steps cumulative(const LatencyHistogram& latency, double cycles_per_us) {
  Steps steps;
  std::uint64_t calls = 0;
  std::uint64_t edge_ns = first_edge_ns;
  latency.each_bucket([&](std::uint64_t cycles, std::uint64_t here) {
    const double ns = static_cast<double>(cycles) / cycles_per_us * 1000;
    while (ns > static_cast<double>(end_of_bucket(edge_ns))) edge_ns *= 2;
    calls += here;
    const std::uint64_t us = end_of_bucket(edge_ns) / 1000;
    if (steps.empty() || steps.back().us != us) steps.push_back({us, 0});
    steps.back().calls = calls;
  });
  return steps;
}

void histogram(const Call& call) {
  const auto& by_command = call.server.stats.by_command;
  std::vector<const Command*> told;
  const auto tell = [&](const Command& command) {
    const auto calls = by_command.find(&command);
    if (calls != by_command.end() && calls->second.latency.count() != 0) told.push_back(&command);
  };
  if (call.count() == 2) {
    for (const auto& [command, calls] : by_command) tell(*command);
  }
  for (const Argument& word : call.arguments.subspan(2)) {
    const Command* command = find_full_name(word.text);
    if (command == nullptr) continue;
    tell(*command);
    for (const Command& sub : command->subcommands) tell(sub);
  }
  const double per_us = call.server.cycle_rate.per_us();
  call.reply.map(told.size());
  for (const Command* command : told) {
    const LatencyHistogram& latency = by_command.at(command).latency;
    const Steps steps = cumulative(latency, per_us);
    call.reply.bulk(command->full_name());
    call.reply.map(2);
    call.reply.bulk("calls");
    call.reply.integer(static_cast<std::int64_t>(latency.count()));
    call.reply.bulk("histogram_usec");
    call.reply.map(steps.size());
    for (const Step& step : steps) {
      call.reply.integer(static_cast<std::int64_t>(step.us));
      call.reply.integer(static_cast<std::int64_t>(step.calls));
    }
  }
}

void help(const Call& call) {
  reply_help(call,
             {
                 "DOCTOR",
                 "    Return a human readable latency analysis report.",
                 "GRAPH <event>",
                 "    Return an ASCII latency graph for the <event> class.",
                 "HISTORY <event>",
                 "    Return time-latency samples for the <event> class.",
                 "LATEST",
                 "    Return the latest latency samples for all events.",
                 "RESET [<event> ...]",
                 "    Reset latency data of one or more <event> classes.",
                 "    (default: reset all data for all event classes)",
                 "HISTOGRAM [COMMAND ...]",
                 "    Return a cumulative distribution of latencies in the format of a histogram for the "
                 "specified command names.",
                 "    If no commands are specified then all histograms are replied.",
             });
}

}  // namespace

std::span<const Command> latency_commands() {
  using namespace flag;
  constexpr std::uint32_t common = admin | noscript | loading | stale;
  static constexpr Command subcommands[] = {
      {"doctor", 2, common, 0, 0, 0, latency_doctor, "server", "Reports on latency.", {}, "latency"},
      {"graph", 3, common, 0, 0, 0, graph, "server", "Draws an event's samples.", {}, "latency"},
      {"latest", 2, common, 0, 0, 0, latest_events, "server", "Returns latency events.", {}, "latency"},
      {"history", 3, common, 0, 0, 0, events_of_kind, "server", "Returns an event's samples.", {}, "latency"},
      {"histogram", -2, common, 0, 0, 0, histogram, "server", "Counts calls by time taken.", {}, "latency"},
      {"reset", -2, common, 0, 0, 0, reset_events, "server", "Forgets latency events.", {}, "latency"},
      {"help", 2, loading | stale, 0, 0, 0, help, "server", "Explains LATENCY.", {}, "latency"},
  };
  static constexpr Command commands[] = {
      {"latency", -2, 0, 0, 0, 0, nullptr, "server", "Looks at latency events.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
