#include "fabric/sim/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::fabric::sim {

Percentiles percentiles(std::vector<double>& values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto rank = [&](double part) {
    const auto at = static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size())));
    return values[std::clamp<std::size_t>(at, 1, values.size()) - 1];
  };
  return {rank(0.5), rank(0.95), rank(0.99), values.back()};
}

namespace {

double slowdown_of(const FlowResult& result) {
  return static_cast<double>(result.arrived - result.started) /
         static_cast<double>(std::max<Ticks>(result.ideal, 1));
}

}  // namespace

Summary summarize(const Simulation& simulation, bool partial) {
  Summary summary;
  summary.partial = partial;
  summary.simulated_us = to_us(simulation.now());
  summary.totals = simulation.totals();
  summary.flows = simulation.results().size();
  summary.finished = simulation.totals().finished;
  std::vector<double> times, slowdowns;
  for (const auto& result : simulation.results()) {
    if (result.arrived == no_time) continue;
    times.push_back(to_us(result.arrived - result.started));
    slowdowns.push_back(slowdown_of(result));
    summary.last_arrival_us = std::max(summary.last_arrival_us, to_us(result.arrived));
  }
  summary.completion_us = percentiles(times);
  summary.slowdown = percentiles(slowdowns);
  const double until = summary.finished == summary.flows && summary.flows != 0 ? summary.last_arrival_us
                                                                               : summary.simulated_us;
  if (until > 0)
    summary.goodput_gbps = static_cast<double>(summary.totals.delivered_bytes) * 8 / (until * 1000);
  const Fabric& fabric = simulation.fabric();
  for (std::uint32_t n = 0; n < fabric.nodes.size(); ++n) {
    const auto& pool = simulation.pool(n);
    summary.buffer_most_bytes = std::max(summary.buffer_most_bytes, pool.used_most * pool.cell_bytes);
  }
  for (std::uint32_t p = 0; p < fabric.ports.size(); ++p)
    for (unsigned i = 0; i < priorities; ++i) {
      const std::uint64_t cell = simulation.pool(fabric.ports[p].node).cell_bytes;
      summary.headroom_most_bytes =
          std::max(summary.headroom_most_bytes, std::uint64_t{simulation.group(p, i).headroom_most} * cell);
      if (!fabric.nodes[fabric.ports[p].node].host)
        summary.queue_most_bytes =
            std::max<std::uint64_t>(summary.queue_most_bytes, simulation.queue(p, i).bytes_most);
      summary.paused_us += to_us(simulation.paused_time(p, i));
    }
  for (const auto& incident : simulation.incidents()) {
    summary.deadlocks += incident.kind == Incident::Kind::deadlock;
    summary.storms += incident.kind == Incident::Kind::storm_detected;
  }
  return summary;
}

std::vector<SizeBin> slowdown_by_size(const Simulation& simulation) {
  std::vector<std::pair<double, double>> rows;  // size, slowdown
  for (std::size_t i = 0; i < simulation.results().size(); ++i)
    if (simulation.results()[i].arrived != no_time)
      rows.emplace_back(static_cast<double>(simulation.experiment().flows[i].bytes),
                        slowdown_of(simulation.results()[i]));
  std::sort(rows.begin(), rows.end());
  // Up to twenty bins with equal numbers of flows, enough for percentiles; no size is in two bins.
  std::vector<SizeBin> bins;
  const std::size_t each = std::max<std::size_t>(20, (rows.size() + 19) / 20);
  for (std::size_t at = 0; at < rows.size();) {
    std::size_t end = std::min(rows.size(), at + each);
    while (end < rows.size() && rows[end].first == rows[end - 1].first) ++end;
    std::vector<double> values;
    for (std::size_t i = at; i < end; ++i) values.push_back(rows[i].second);
    bins.push_back({rows[at].first, rows[end - 1].first, end - at, percentiles(values)});
    at = end;
  }
  return bins;
}

std::string port_name(const Fabric& fabric, std::uint32_t port) {
  return fmt::format("{}:{}", fabric.nodes[fabric.ports[port].node].name, fabric.ports[port].name);
}

std::string describe(const Incident& incident, const Fabric& fabric) {
  const std::string at = fmt::format("{:.3f} us", to_us(incident.time));
  const std::string first = port_name(fabric, incident.ports.front());
  switch (incident.kind) {
    case Incident::Kind::deadlock: {
      std::string cycle;
      for (const auto port : incident.ports)
        cycle += fmt::format("{}{}", cycle.empty() ? "" : " -> ", fabric.nodes[fabric.ports[port].node].name);
      return fmt::format("deadlock, found at {}: priority {} waits in a cycle, {} -> {}", at,
                         incident.priority, cycle,
                         fabric.nodes[fabric.ports[incident.ports.front()].node].name);
    }
    case Incident::Kind::storm_detected:
      return fmt::format("pause storm, detected at {}: {} priority {} sends nothing", at, first,
                         incident.priority);
    case Incident::Kind::storm_over:
      return fmt::format("pause storm over at {}: {} priority {} works again", at, first, incident.priority);
    case Incident::Kind::link_down:
      return fmt::format("link of {} down at {}", first, at);
    case Incident::Kind::link_up:
      return fmt::format("link of {} up again at {}", first, at);
  }
  return {};
}

std::string rate_text(double gbps) {
  return gbps >= 1000 ? fmt::format("{:.4g} Tb/s", gbps / 1000)
         : gbps >= 1  ? fmt::format("{:.4g} Gb/s", gbps)
                      : fmt::format("{:.4g} Mb/s", gbps * 1000);
}

}  // namespace weir::fabric::sim
