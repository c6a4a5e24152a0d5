#include <nlohmann/json.hpp>

#include "fabric/plan/report.hpp"
#include "fabric/plan/threshold.hpp"

namespace weir::fabric {
namespace {

using Json = nlohmann::ordered_json;

Json terms_of(const std::vector<HeadroomTerm>& terms) {
  auto out = Json::array();
  for (const auto& term : terms)
    out.push_back({{"name", term.name}, {"bytes", term.bytes}, {"ns", term.ns}, {"cells", term.cells}});
  return out;
}

Json port_of(const PortPlan& port, const Network& network) {
  Json out = {{"speed_bps", port.speed_bps},
              {"peer", port.peer},
              {"cable_m", port.cable.length_m},
              {"return_cable_m", port.cable.return_length_m},
              {"cable_kind", name_of(port.cable.kind)},
              {"profile", port.profile},
              {"xoff", port.xoff},
              {"xon", port.headroom.xon},
              {"size", port.size()},
              {"sonic_xoff", port.sonic_xoff},
              {"cell_waste", port.headroom.cell_waste},
              {"terms", terms_of(port.headroom.terms)}};
  if (port.published_xoff) out["sonic_table_xoff"] = *port.published_xoff;
  out["first_principles"] = {{"bytes", port.in_principle.bytes},
                             {"cells", port.in_principle.cells},
                             {"ns", port.in_principle.ns},
                             {"worst_packet", port.in_principle.worst_packet_bytes},
                             {"terms", terms_of(port.in_principle.terms)}};
  out["ecn"] = {{"kmin", port.marks.kmin_bytes},
                {"kmax", port.marks.kmax_bytes},
                {"pmax", port.marks.pmax},
                {"bound", port.marks.bound_bytes},
                {"before_pfc", port.marks.before_pfc},
                {"inequality", port.marks.inequality}};
  auto ports = Json::array();
  for (const auto id : port.ports)
    ports.push_back({{"switch", network[network[id].node].name},
                     {"port", network[id].name},
                     {"peer", network[network.neighbor(id)].name}});
  out["ports"] = std::move(ports);
  return out;
}

Json switch_of(const SwitchPlan& kind, const Network& network) {
  Json out = {{"model", kind.model->name}, {"ports_each", kind.port_count}};
  for (const auto node : kind.switches) out["switches"].push_back(network[node].name);
  out["buffer"] = {{"total", kind.split.buffer},
                   {"reserved", kind.split.reserved},
                   {"guaranteed", kind.split.guaranteed},
                   {"headroom", kind.split.headroom},
                   {"headroom_sum", kind.split.headroom_sum},
                   {"shared", kind.split.shared},
                   {"fits", kind.split.fits}};
  out["dynamic_th"] = kind.dynamic_th;
  out["alpha"] = alpha_of(kind.dynamic_th);
  out["xoff_limit_alone"] = kind.xoff_limit_one;
  out["xoff_limit"] = kind.xoff_limit;
  out["xon_offset"] = kind.xon_offset;
  for (int th = least_dynamic_th; th <= most_dynamic_th; ++th)
    out["alpha_steps"].push_back({{"dynamic_th", th},
                                  {"alpha", alpha_of(th)},
                                  {"share_alone", share_of_each(alpha_of(th), 1)},
                                  {"share_each", share_of_each(alpha_of(th), network.hints.congested_queues)},
                                  {"free", share_free(alpha_of(th), network.hints.congested_queues)}});
  out["watchdog"] = {{"detection_ms", kind.watchdog_detection_ms},
                     {"restoration_ms", kind.watchdog_restoration_ms},
                     {"poll_ms", kind.watchdog_poll_ms},
                     {"action", network.overrides.watchdog_action}};
  for (const auto& port : kind.ports) out["ports"].push_back(port_of(port, network));
  return out;
}

Json cycle_of(const DependencyCycle& cycle, const Network& network) {
  auto hops = Json::array();
  for (const auto& hop : cycle.hops)
    hops.push_back({{"from", network[network[hop.out].node].name},
                    {"to", network[network.neighbor(hop.out)].name},
                    {"held_by_packets_for", network[hop.held_by].name}});
  return {{"text", cycle.text}, {"hops", std::move(hops)}};
}

}  // namespace

std::string json_report(const Plan& plan) {
  const auto& network = *plan.network;
  Json out = {{"network", network.name},
              {"nodes", network.nodes.size()},
              {"links", network.links.size()},
              {"lossless_priorities", network.classes.lossless},
              {"congested_queues", network.hints.congested_queues},
              {"rtt_ns", plan.rtt_ns}};
  out["findings"] = Json::array();
  for (const auto& finding : plan.findings)
    out["findings"].push_back({{"severity", name_of(finding.severity)},
                               {"code", finding.code},
                               {"text", finding.text},
                               {"line", finding.place.line}});
  auto& deadlock = out["deadlock"];
  deadlock["cycles"] = Json::array();
  for (const auto& cycle : plan.deadlock.cycles) deadlock["cycles"].push_back(cycle_of(cycle, network));
  deadlock["failures_examined"] = plan.deadlock.failures_examined;
  deadlock["failures_with_cycle"] = plan.deadlock.failures_with_cycle;
  deadlock["after_failure"] = Json::array();
  for (const auto& [failed, cycle] : plan.deadlock.after_failure)
    deadlock["after_failure"].push_back(
        {{"failed",
          {network[network[network[failed].a].node].name, network[network[network[failed].b].node].name}},
         {"cycle", cycle_of(cycle, network)}});
  out["hot_links"] = Json::array();
  for (const auto& [port, share] : plan.hot_links)
    out["hot_links"].push_back({{"from", network[network[port].node].name},
                                {"to", network[network.neighbor(port)].name},
                                {"load", share}});
  for (const auto& kind : plan.switches) out["switches"].push_back(switch_of(kind, network));
  return out.dump(2) + "\n";
}

}  // namespace weir::fabric
