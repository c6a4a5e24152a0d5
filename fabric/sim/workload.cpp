#include "fabric/sim/workload.hpp"

#include <algorithm>
#include <numeric>

#include "fabric/sim/random.hpp"
#include "fabric/sim/size_distribution.hpp"

namespace weir::fabric::sim {
namespace {

class Flows {
 public:
  Flows(std::vector<FlowSpec>& flows, const Workload& workload, std::uint16_t index)
      : flows_(flows), workload_(workload), index_(index) {}

  void add(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, Ticks start,
           std::uint32_t then = none) {
    FlowSpec flow;
    flow.source = from;
    flow.destination = to;
    flow.bytes = bytes;
    flow.start = start;
    flow.then = then;
    flow.workload = index_;
    flow.priority = workload_.priority.value_or(flow.priority);
    flows_.push_back(flow);
  }
  std::uint32_t next() const { return static_cast<std::uint32_t>(flows_.size()); }

 private:
  std::vector<FlowSpec>& flows_;
  const Workload& workload_;
  std::uint16_t index_;
};

// A random permutation without fixed points (Sattolo): one cycle through all.
void permutation(Flows& flows, const Workload& workload, Ticks start, Random& random) {
  std::vector<std::uint32_t> to = workload.hosts;
  for (auto i = static_cast<std::uint32_t>(to.size()); i-- > 1;) std::swap(to[i], to[random.below(i)]);
  for (std::size_t i = 0; i < to.size(); ++i) flows.add(workload.hosts[i], to[i], workload.bytes, start);
}

void all_to_all(Flows& flows, const Workload& workload, Ticks start) {
  const std::size_t n = workload.hosts.size();
  // Each host begins with its neighbour, so that not all send to the same host first.
  for (std::size_t step = 1; step < n; ++step)
    for (std::size_t i = 0; i < n; ++i)
      flows.add(workload.hosts[i], workload.hosts[(i + step) % n], workload.bytes, start);
}

void poisson(Flows& flows, const Workload& workload, const Fabric& fabric, const Transport& transport,
             Random& random) {
  const double overhead =
      1 + static_cast<double>(transport.header_bytes + transport.gap_bytes) / transport.mtu_bytes;
  std::vector<double> gbps(fabric.nodes.size());  // summed over all links of a node
  for (const auto& port : fabric.ports) gbps[port.node] += port.gbps;
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

// 2 (n - 1) steps: first the sums travel around the ring, then the results. Host i may send its part of a
// step once that of the previous step has reached it, so each flow names the flow that it releases.
void ring_allreduce(Flows& flows, const Workload& workload) {
  const auto n = static_cast<std::uint32_t>(workload.hosts.size());
  const std::uint32_t steps = 2 * (n - 1);
  const std::uint32_t first = flows.next();
  const std::uint64_t part = std::max<std::uint64_t>(1, workload.bytes / n);
  for (std::uint32_t step = 0; step < steps; ++step)
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t then = step + 1 < steps ? first + (step + 1) * n + (i + 1) % n : none;
      flows.add(workload.hosts[i], workload.hosts[(i + 1) % n], part, step == 0 ? workload.start : no_time,
                then);
    }
}

}  // namespace

void append_flows(std::vector<FlowSpec>& list, const Workload& workload, std::uint16_t index,
                  const Fabric& fabric, const Transport& transport, std::uint64_t seed) {
  Flows flows(list, workload, index);
  Random random(mix(seed) ^ mix(index + 1));
  switch (workload.pattern) {
    case Pattern::poisson:
      return poisson(flows, workload, fabric, transport, random);
    case Pattern::ring_allreduce:
      return ring_allreduce(flows, workload);
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
  const bool ring = workload.pattern == Pattern::ring_allreduce;
  if (hosts < 2 || !(ring || (workload.pattern == Pattern::all_to_all && workload.repeat == 1)))
    return std::nullopt;
  const double others = static_cast<double>(hosts - 1) / hosts;
  // In an all-to-all a host keeps a part for itself, which NCCL counts.
  return Collective{
      workload.name, ring ? "ring-allreduce" : "all-to-all",         index,
      hosts,         ring ? workload.bytes : workload.bytes * hosts, ring ? 2 * others : others};
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
    case Pattern::ring_allreduce:
      return n * 2 * (n - 1);
    case Pattern::poisson:
      break;
  }
  const Ticks until = workload.until != 0 ? workload.until : from_ns(knobs.duration_ns);
  const double seconds = to_s(until - std::min(until, workload.start));
  return n * seconds * workload.load * knobs.load_factor * fastest_gbps * 1e9 / 8 / workload.sizes->mean();
}

}  // namespace weir::fabric::sim
