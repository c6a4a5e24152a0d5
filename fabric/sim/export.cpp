// Results as CSV and JSON. Counters have SONiC's names where SONiC has them.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "fabric/sim/collective.hpp"
#include "fabric/sim/summary.hpp"

namespace weir::fabric::sim {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const Percentiles& p) {
  return {{"p50", p.p50}, {"p95", p.p95}, {"p99", p.p99}, {"max", p.most}};
}

}  // namespace

std::string summary_json(const Simulation& simulation, const Summary& summary, const RunTitle& title) {
  const auto& totals = summary.totals;
  Json incidents = Json::array();
  for (const auto& incident : simulation.incidents())
    incidents.push_back(describe(incident, simulation.fabric()));
  Json settings = Json::object();
  for (const auto& [key, value] : title.settings) settings[key] = value;
  Json bins = Json::array();
  for (const auto& bin : slowdown_by_size(simulation))
    bins.push_back({{"bytes_from", bin.bytes_from},
                    {"bytes_to", bin.bytes_to},
                    {"flows", bin.flows},
                    {"slowdown", as_json(bin.slowdown)}});
  Json collectives = Json::array();
  for (const auto& result : collective_results(simulation))
    collectives.push_back({{"name", result.name},
                           {"kind", result.kind},
                           {"hosts", result.hosts},
                           {"bytes", result.bytes},
                           {"flows", result.flows},
                           {"finished", result.finished},
                           {"completion_us", result.completion_us},
                           {"bus_gbps", result.bus_gbps}});
  const Json json = {
      {"scenario", title.name},
      {"partial", summary.partial},
      {"seed", simulation.experiment().seed},
      {"settings", settings},
      {"simulated_us", summary.simulated_us},
      {"flows", summary.flows},
      {"finished", summary.finished},
      {"completion_us", as_json(summary.completion_us)},
      {"slowdown", as_json(summary.slowdown)},
      {"slowdown_by_size", bins},
      {"collectives", collectives},
      {"last_arrival_us", summary.last_arrival_us},
      {"goodput_gbps", summary.goodput_gbps},
      {"delivered_bytes", totals.delivered_bytes},
      {"lossless_drops", totals.lossless_drops},
      {"ingress_drops", totals.ingress_drops},
      {"egress_drops", totals.egress_drops},
      {"link_drops", totals.link_drops},
      {"retransmitted_packets", totals.retransmitted},
      {"spuriously_retransmitted_packets", totals.spurious},
      {"ecn_marked_packets", totals.marked},
      {"cnps", totals.cnps},
      {"pfc_frames", totals.pfc_frames},
      {"paused_us", summary.paused_us},
      {"shared_buffer_watermark_bytes", summary.buffer_most_bytes},
      {"headroom_watermark_bytes", summary.headroom_most_bytes},
      {"queue_watermark_bytes", summary.queue_most_bytes},
      {"deadlocks", summary.deadlocks},
      {"storms", summary.storms},
      {"incidents", incidents},
      {"events", totals.events},
      {"packet_hops", totals.hops},
  };
  return json.dump(2) + "\n";
}

std::string flows_csv(const Simulation& simulation) {
  std::string out =
      "flow,workload,source,destination,priority,bytes,start_us,completion_us,ideal_us,slowdown,"
      "retransmitted,cnps\n";
  const Fabric& fabric = simulation.fabric();
  for (std::size_t i = 0; i < simulation.results().size(); ++i) {
    const auto& spec = simulation.experiment().flows[i];
    const auto& result = simulation.results()[i];
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},", i, spec.workload,
                   fabric.nodes[fabric.hosts[spec.source]].name,
                   fabric.nodes[fabric.hosts[spec.destination]].name, spec.priority, spec.bytes);
    if (result.started == no_time) {
      out += ",,,,0,0\n";
      continue;
    }
    fmt::format_to(std::back_inserter(out), "{:.5f},", to_us(result.started));
    if (result.arrived == no_time)
      fmt::format_to(std::back_inserter(out), ",{:.5f},,", to_us(result.ideal));
    else
      fmt::format_to(
          std::back_inserter(out), "{:.5f},{:.5f},{:.4f},", to_us(result.arrived - result.started),
          to_us(result.ideal),
          static_cast<double>(result.arrived - result.started) / static_cast<double>(result.ideal));
    fmt::format_to(std::back_inserter(out), "{},{}\n", result.retransmitted, result.cnps);
  }
  return out;
}

std::string ports_csv(const Simulation& simulation) {
  std::string out =
      "node,port,priority,SAI_QUEUE_STAT_PACKETS,SAI_QUEUE_STAT_BYTES,SAI_QUEUE_STAT_DROPPED_PACKETS,"
      "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS,queue_watermark_bytes,"
      "SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES,"
      "SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES,ingress_dropped_packets,xoff_sent,xon_sent,"
      "xoff_received,xon_received,rx_pause_duration_us\n";
  const Fabric& fabric = simulation.fabric();
  for (std::uint32_t p = 0; p < fabric.ports.size(); ++p)
    for (unsigned i = 0; i < priorities; ++i) {
      const auto& queue = simulation.queue(p, i);
      const auto& group = simulation.group(p, i);
      const auto& pfc = simulation.pfc(p, i);
      if (queue.sent_packets == 0 && queue.dropped == 0 && group.shared_most == 0 && group.xoff_sent == 0 &&
          group.dropped == 0 && pfc.received_xoff == 0)
        continue;
      const std::uint64_t cell = simulation.pool(fabric.ports[p].node).cell_bytes;
      fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:.5f}\n",
                     fabric.nodes[fabric.ports[p].node].name, fabric.ports[p].name, i, queue.sent_packets,
                     queue.sent_bytes, queue.dropped, queue.marked, queue.bytes_most,
                     group.shared_most * cell, group.headroom_most * cell, group.dropped, group.xoff_sent,
                     group.xon_sent, pfc.received_xoff, pfc.received_xon,
                     to_us(simulation.paused_time(p, i)));
    }
  return out;
}

std::string totals_csv(const Simulation& simulation) {
  std::string out = "time_us,delivered_bytes,flows_alive,queues_paused\n";
  for (const auto& row : simulation.series().totals)
    fmt::format_to(std::back_inserter(out), "{:.5f},{},{},{}\n", to_us(row.time), row.delivered_bytes,
                   row.flows_alive, row.queues_paused);
  return out;
}

std::string switches_csv(const Simulation& simulation) {
  std::string out = "time_us,node,shared_bytes,headroom_bytes\n";
  for (const auto& row : simulation.series().switches)
    fmt::format_to(std::back_inserter(out), "{:.5f},{},{},{}\n", to_us(row.time),
                   simulation.fabric().nodes[row.node].name, row.shared_bytes, row.headroom_bytes);
  return out;
}

std::string queues_csv(const Simulation& simulation) {
  std::string out = "time_us,node,port,priority,egress_bytes,ingress_shared_bytes,headroom_bytes,paused\n";
  const Fabric& fabric = simulation.fabric();
  for (const auto& row : simulation.series().queues)
    fmt::format_to(std::back_inserter(out), "{:.5f},{},{},{},{},{},{},{}\n", to_us(row.time),
                   fabric.nodes[fabric.ports[row.port].node].name, fabric.ports[row.port].name, row.priority,
                   row.egress_bytes, row.ingress_shared_bytes, row.headroom_bytes, row.paused ? 1 : 0);
  return out;
}

}  // namespace weir::fabric::sim
