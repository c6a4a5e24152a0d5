#include "fabric/sim/traffic/workload.hpp"

#include <algorithm>
#include <numeric>

#include "fabric/sim/random.hpp"
#include "fabric/sim/traffic/flow_writer.hpp"
#include "fabric/sim/traffic/size_distribution.hpp"

namespace weir::fabric::sim {
namespace {

// A random permutation without fixed points (Sattolo): one cycle through all.
void permutation(FlowWriter& flows, const Workload& workload, Ticks start, Random& random) {
  std::vector<std::uint32_t> to = workload.hosts;
  for (auto i = static_cast<std::uint32_t>(to.size()); i-- > 1;) std::swap(to[i], to[random.below(i)]);
  for (std::size_t i = 0; i < to.size(); ++i) flows.add(workload.hosts[i], to[i], workload.bytes, start);
}

void all_to_all(FlowWriter& flows, const Workload& workload, Ticks start) {
  const std::size_t n = workload.hosts.size();
  // Each host begins with its neighbour, so that not all send to the same host first.
  for (std::size_t step = 1; step < n; ++step)
    for (std::size_t i = 0; i < n; ++i)
      flows.add(workload.hosts[i], workload.hosts[(i + step) % n], workload.bytes, start);
}

// Summed over all links of a node.
std::vector<double> gbps_of_nodes(const Fabric& fabric) {
  std::vector<double> gbps(fabric.nodes.size());
  for (const auto& port : fabric.ports) gbps[port.node] += port.gbps;
  return gbps;
}

void poisson(FlowWriter& flows, const Workload& workload, const Fabric& fabric, const Transport& transport,
             Random& random) {
  const double overhead =
      1 + static_cast<double>(transport.header_bytes + transport.gap_bytes) / transport.mtu_bytes;
  const std::vector<double> gbps = gbps_of_nodes(fabric);
  for (std::size_t i = 0; i < workload.hosts.size(); ++i) {
    const std::uint32_t from = workload.hosts[i];
    const double bytes_per_s = gbps[fabric.hosts[from]] * 1e9 / 8 * workload.load;
    const double mean_gap = workload.sizes->mean() * overhead / bytes_per_s * ticks_per_s;
    for (double at = static_cast<double>(workload.start);;) {
      at += random.exponential(mean_gap);
      if (at > static_cast<double>(workload.until)) break;
      auto to = random.below(static_cast<std::uint32_t>(workload.hosts.size() - 1));
      if (to >= i) ++to;
      flows.add(from, workload.hosts[to], workload.sizes->sample(random), static_cast<Ticks>(at));
    }
  }
}

// At random times a random receiver gets flows of `senders` others at once.
void poisson_incast(FlowWriter& flows, const Workload& workload, const Fabric& fabric,
                    const Transport& transport, Random& random) {
  const double overhead =
      1 + static_cast<double>(transport.header_bytes + transport.gap_bytes) / transport.mtu_bytes;
  double gbps = 0;  // of all hosts
  const std::vector<double> of = gbps_of_nodes(fabric);
  for (const std::uint32_t host : workload.hosts) gbps += of[fabric.hosts[host]];
  const double bytes = static_cast<double>(workload.bytes) * workload.senders * overhead;
  const double mean_gap = bytes / (gbps * 1e9 / 8 * workload.load) * ticks_per_s;
  std::vector<std::uint32_t> some = workload.hosts;
  for (double at = static_cast<double>(workload.start);;) {
    at += random.exponential(mean_gap);
    if (at > static_cast<double>(workload.until)) break;
    // The first is the receiver, those behind it the senders (Fisher and Yates).
    for (std::uint32_t i = 0; i <= workload.senders; ++i)
      std::swap(some[i], some[i + random.below(static_cast<std::uint32_t>(some.size() - i))]);
    for (std::uint32_t i = 1; i <= workload.senders; ++i)
      flows.add(some[i], some[0], workload.bytes, static_cast<Ticks>(at));
  }
}

void replay(FlowWriter& flows, const Workload& workload) {
  const Trace& trace = workload.trace;
  std::vector<std::uint32_t> ids, pauses;
  std::vector<bool> follows(trace.flows.size()), pause_follows(trace.pauses.size());
  for (const Precedence& one : trace.order)
    ((one.after & pause_bit) == 0 ? follows : pause_follows)[one.after & ~pause_bit] = true;
  for (std::size_t i = 0; i < trace.flows.size(); ++i) {
    const ListedFlow& flow = trace.flows[i];
    ids.push_back(flows.add(flow.from, flow.to, flow.bytes, follows[i] ? no_time : workload.start));
  }
  for (std::size_t i = 0; i < trace.pauses.size(); ++i)
    pauses.push_back(flows.pause(trace.pauses[i], pause_follows[i] ? no_time : workload.start));
  const auto named = [&](std::uint32_t what) {
    return (what & pause_bit) == 0 ? ids[what] : pauses[what & ~pause_bit];
  };
  for (const Precedence& one : trace.order) flows.precede(named(one.before), named(one.after));
}

}  // namespace

void append_flows(Experiment& run, const Workload& workload, std::uint16_t index, const Fabric& fabric) {
  FlowWriter flows(run, workload.priority, index);
  Random random(mix(run.seed) ^ mix(index + 1));
  switch (workload.pattern) {
    case Pattern::poisson:
      return poisson(flows, workload, fabric, run.transport, random);
    case Pattern::poisson_incast:
      return poisson_incast(flows, workload, fabric, run.transport, random);
    case Pattern::all_reduce:
      return all_reduce(flows, workload.all_reduce, workload.hosts, workload.bytes, workload.start);
    case Pattern::goal:
      return replay(flows, workload);
    case Pattern::flows:
      for (const auto& flow : workload.listed) flows.add(flow.from, flow.to, flow.bytes, flow.start);
      return;
    default:
      break;
  }
  for (std::uint32_t round = 0; round < workload.repeat; ++round) {
    const Ticks start = workload.start + round * workload.every;
    if (workload.pattern == Pattern::permutation)
      permutation(flows, workload, start, random);
    else if (workload.pattern == Pattern::all_to_all)
      all_to_all(flows, workload, start);
    else
      for (const std::uint32_t sender : workload.hosts)
        flows.add(sender, workload.receiver, workload.bytes, start);
  }
}

std::optional<Collective> collective_of(const Workload& workload, std::uint16_t index) {
  const auto hosts = static_cast<std::uint32_t>(workload.hosts.size());
  const bool reduces = workload.pattern == Pattern::all_reduce;
  if (hosts < 2 || !(reduces || (workload.pattern == Pattern::all_to_all && workload.repeat == 1)))
    return std::nullopt;
  const double others = static_cast<double>(hosts - 1) / hosts;
  // In an all-to-all a host keeps a part for itself, which NCCL counts.
  return Collective{workload.name,
                    reduces ? name_of(workload.all_reduce.algorithm) : "all-to-all",
                    index,
                    hosts,
                    reduces ? workload.bytes : workload.bytes * hosts,
                    reduces ? 2 * others : others};
}

double expected_flows(const Workload& workload, const Knobs& knobs, double fastest_gbps) {
  const auto n = static_cast<double>(workload.hosts.size());
  switch (workload.pattern) {
    case Pattern::incast:
    case Pattern::permutation:
      return n * workload.repeat;
    case Pattern::all_to_all:
      return n * (n - 1) * workload.repeat;
    case Pattern::flows:
      return static_cast<double>(workload.listed.size());
    case Pattern::goal:
      return static_cast<double>(workload.trace.flows.size());
    case Pattern::all_reduce:
      return flows_of(workload.all_reduce, workload.hosts.size());
    case Pattern::poisson:
    case Pattern::poisson_incast:
      break;
  }
  const Ticks until = workload.until != 0 ? workload.until : from_ns(knobs.duration_ns);
  const double seconds = to_s(until - std::min(until, workload.start));
  const double mean =
      workload.sizes != nullptr ? workload.sizes->mean() : static_cast<double>(workload.bytes);
  return n * seconds * workload.load * knobs.load_factor * fastest_gbps * 1e9 / 8 / mean;
}

}  // namespace weir::fabric::sim
