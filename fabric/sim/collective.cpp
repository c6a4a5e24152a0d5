#include "fabric/sim/collective.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fabric/picture/page.hpp"
#include "fabric/sim/summary.hpp"

namespace weir::fabric::sim {

std::vector<CollectiveResult> collective_results(const Simulation& simulation) {
  const auto& run = simulation.experiment();
  std::vector<CollectiveResult> out;
  std::vector<std::size_t> result_of;  // by workload: index into `out`, or its size
  std::vector<Ticks> start, end;
  for (const auto& collective : run.collectives) {
    if (collective.workload >= result_of.size())
      result_of.resize(collective.workload + 1u, run.collectives.size());
    result_of[collective.workload] = out.size();
    out.push_back({collective.name, collective.kind, collective.hosts, collective.bytes});
    start.push_back(no_time);
    end.push_back(0);
  }
  for (std::size_t i = 0; i < run.flows.size(); ++i) {
    const auto workload = run.flows[i].workload;
    if (workload >= result_of.size() || result_of[workload] >= out.size()) continue;
    const auto at = result_of[workload];
    const auto& flow = simulation.results()[i];
    ++out[at].flows;
    if (flow.started != no_time) start[at] = std::min(start[at], flow.started);
    if (flow.arrived == no_time) continue;
    ++out[at].finished;
    end[at] = std::max(end[at], flow.arrived);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto& result = out[i];
    if (result.flows == 0 || result.finished != result.flows || end[i] <= start[i]) continue;
    result.completion_us = to_us(end[i] - start[i]);
    const double gbps = static_cast<double>(result.bytes) * 8 / (result.completion_us * 1000);
    result.bus_gbps = gbps * run.collectives[i].bus_factor;
  }
  return out;
}

std::string describe(const CollectiveResult& result) {
  const auto what = fmt::format("{} \"{}\", {} hosts, {}B: ", result.kind, result.name, result.hosts,
                                short_number(static_cast<double>(result.bytes)));
  if (result.completion_us == 0)
    return what + fmt::format("not finished, {} of {} flows are", result.finished, result.flows);
  return what +
         fmt::format("{:.3f} ms, bus bandwidth {}", result.completion_us / 1000, rate_text(result.bus_gbps));
}

}  // namespace weir::fabric::sim
