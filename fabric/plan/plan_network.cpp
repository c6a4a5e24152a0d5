#include "fabric/plan/plan_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "fabric/plan/findings.hpp"
#include "fabric/plan/paths.hpp"
#include "fabric/plan/published_headroom.hpp"
#include "fabric/plan/threshold.hpp"

namespace weir::fabric {
namespace {

constexpr std::uint32_t watchdog_ms = 200;  // SONiC's default for 32 ports; proportionally longer for more
constexpr std::size_t watchdog_ports = 32;
constexpr std::uint32_t eight_lanes = 8;

std::string peer_of(const Network& network, PortId port) {
  const auto& node = network[network.neighbor(port)];
  return node.kind == NodeKind::host ? "hosts" : network.model_of(node).name;
}

// Everything that determines a port's plan, in the order of the listing.
auto port_key(const Network& network, PortId port) {
  const auto& link = network[network[port].link];
  return std::tuple(link.speed_bps, peer_of(network, port), network.outbound_delay_ns(port),
                    network.outbound_delay_ns(network[port].peer), link.cable.kind, link.cable.length_m,
                    link.cable.return_length_m, link.cable.ns_per_m, network[port].lanes == eight_lanes);
}
using PortKey = decltype(port_key(std::declval<Network>(), PortId{}));

bool in_eight_lanes(const Network& network, const PortPlan& port) {
  return network[port.ports.front()].lanes == eight_lanes;
}

SonicHeadroomInput sonic_input(const Network& network, const SwitchModel& model, const PortPlan& port) {
  SonicHeadroomInput in;
  in.speed_bps = port.speed_bps;
  // The formula doubles one length; for a cable with unequal strands the mean is right.
  in.cable_m = (port.cable.length_m + port.cable.return_length_m) / 2;
  in.port_mtu_bytes = network.classes.mtu_bytes;
  in.lossless_mtu_bytes = network.classes.lossless_mtu_bytes;
  in.small_packet_percentage = network.classes.small_packet_percentage;
  in.cell_bytes = model.cell_bytes;
  in.pipeline_bytes = model.pipeline_bytes;
  in.mac_phy_bytes = model.mac_phy_bytes;
  in.peer_response_bytes = model.peer_response_bytes;
  in.gearbox_ns = model.gearbox_ns;
  in.macsec_ns = model.macsec_ns;
  in.tile_bytes_per_gbps = model.tile_bytes_per_gbps;
  in.formula = sonic_formula(network.overrides.sonic_release);
  in.eight_lanes = in_eight_lanes(network, port);
  in.shared_pool = model.headroom_pool == HeadroomPool::shared;
  return in;
}

FirstPrinciplesInput principles_input(const Network& network, const SwitchModel& model,
                                      const PortPlan& port) {
  FirstPrinciplesInput in;
  in.speed_bps = port.speed_bps;
  in.pfc_generation_ns = model.pfc_generation_ns;
  in.blocking_frame_bytes = network.classes.mtu_bytes;
  in.pfc_frame_bytes = pfc_frame_bytes;
  in.phy_ns = 4 * (model.phy_ns + model.gearbox_ns + model.macsec_ns);  // two ends, two directions
  in.cable_out_ns = port.cable.length_m * port.cable.ns_per_m;
  in.cable_back_ns = port.cable.return_length_m * port.cable.ns_per_m;
  in.peer_frame_bytes = network.classes.lossless_mtu_bytes;
  in.smallest_packet_bytes = network.classes.smallest_packet_bytes;
  in.largest_packet_bytes = network.classes.lossless_mtu_bytes;
  in.cell_bytes = model.cell_bytes;
  return in;
}

void add_ports(const Network& network, SwitchPlan& plan) {
  std::map<PortKey, std::vector<PortId>> kinds;
  for (const auto node : plan.switches)
    for (const auto port : network[node].ports) kinds[port_key(network, port)].push_back(port);
  plan.port_count = network[plan.switches.front()].ports.size();
  for (auto& [key, ports] : kinds) {
    PortPlan port;
    const auto& link = network[network[ports.front()].link];
    port.speed_bps = link.speed_bps;
    port.cable = link.cable;
    if (link.b == ports.front())
      std::swap(port.cable.length_m, port.cable.return_length_m);  // as seen from the port
    port.peer = peer_of(network, ports.front());
    port.ports_per_switch = ports.size() / plan.switches.size();
    port.ports = std::move(ports);
    const auto input = sonic_input(network, *plan.model, port);
    port.headroom = sonic_headroom(input);
    port.published_xoff = published_xoff(plan.model->headroom_table, input);
    const bool looked_up = plan.model->headroom_looked_up || input.formula == &sonic_formulas().front();
    port.sonic_xoff = looked_up ? port.published_xoff.value_or(port.headroom.xoff) : port.headroom.xoff;
    port.in_principle = first_principles(principles_input(network, *plan.model, port));
    const auto needed = (port.in_principle.bytes + 1023) / 1024 * 1024;
    port.xoff = port.sonic_xoff;
    if (!network.overrides.sonic_headroom_only)
      port.xoff = std::max({port.xoff, port.published_xoff.value_or(0), needed});
    if (network.overrides.xoff_bytes) port.xoff = static_cast<std::uint64_t>(*network.overrides.xoff_bytes);
    const auto length = std::ceil((port.cable.length_m + port.cable.return_length_m) / 2);
    port.profile = fmt::format("pg_lossless_{}_{:.0f}m{}_profile", port.speed_bps / 1'000'000, length,
                               in_eight_lanes(network, port) ? "_8lane" : "");
    plan.ports.push_back(std::move(port));
  }
  // SONiC identifies a port's profile by its speed and a length in whole metres; equal ones share it.
  std::map<std::string, std::uint64_t> largest;
  for (const auto& port : plan.ports) largest[port.profile] = std::max(largest[port.profile], port.xoff);
  for (auto& port : plan.ports) port.xoff = largest[port.profile];
}

// What all ports share: the user's figure, what the switch's own template sets aside, or the sum of what the
// groups need, divided by how much of it is never needed at once.
std::uint64_t headroom_pool(const Network& network, const SwitchPlan& plan, const BufferSplit& split) {
  if (network.overrides.headroom_pool_bytes)
    return static_cast<std::uint64_t>(*network.overrides.headroom_pool_bytes);
  if (plan.model->pools.xoff_bytes) return *plan.model->pools.xoff_bytes;
  return static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(split.headroom_sum) / plan.model->over_subscription / 1024) * 1024);
}

BufferSplit split_of(const Network& network, const SwitchPlan& plan) {
  // The chip refuses pools larger than its number of whole cells.
  const auto whole_cells = [cell = plan.model->cell_bytes](std::uint64_t bytes) {
    return bytes - bytes % cell;
  };
  BufferSplit split;
  split.buffer = whole_cells(plan.model->buffer_bytes);
  split.reserved = plan.model->reserved_bytes + plan.port_count * plan.model->reserved_per_port_bytes;
  for (const auto& port : plan.ports) {
    const auto groups = port.ports_per_switch * network.classes.lossless.size();
    split.guaranteed += groups * port.guaranteed();
    split.headroom_sum += groups * port.xoff;
  }
  split.headroom = split.headroom_sum;
  if (plan.model->headroom_pool == HeadroomPool::shared) split.headroom = headroom_pool(network, plan, split);
  const auto taken = split.reserved + split.guaranteed + split.headroom;
  split.fits = taken + plan.model->cell_bytes <= split.buffer;
  split.shared = split.fits ? whole_cells(split.buffer - taken) : 0;
  if (split.fits) split.reserved += split.buffer - taken - split.shared;
  return split;
}

void set_thresholds(const Network& network, SwitchPlan& plan) {
  const auto& hints = network.hints;
  const auto& overrides = network.overrides;
  plan.dynamic_th =
      overrides.dynamic_th.value_or(choose_dynamic_th(hints.congested_queues, overrides.free_share));
  const double alpha = alpha_of(plan.dynamic_th);
  plan.xoff_limit_one = limit_of_each(plan.split.shared, alpha, 1);
  plan.xoff_limit = limit_of_each(plan.split.shared, alpha, hints.congested_queues);
  // Two frames: enough that one more frame does not cross the limit again, and too few to run dry.
  const double cells = std::ceil(2.0 * network.classes.lossless_mtu_bytes / plan.model->cell_bytes);
  plan.xon_offset =
      static_cast<std::uint64_t>(overrides.xon_offset_bytes.value_or(cells * plan.model->cell_bytes));
  for (auto& port : plan.ports)
    port.marks = place_marks({port.speed_bps, plan.xoff_limit, hints.spread, plan.model->cell_bytes,
                              overrides.kmin_bytes, overrides.kmax_bytes, overrides.pmax});
  const auto scale = static_cast<std::uint32_t>((plan.port_count - 1) / watchdog_ports + 1);
  const auto usual = std::min(watchdog_ms * scale, 1000u);  // SONiC's longest polling interval
  plan.watchdog_detection_ms = overrides.watchdog_detection_ms.value_or(usual);
  plan.watchdog_restoration_ms = overrides.watchdog_restoration_ms.value_or(usual);
  plan.watchdog_poll_ms = overrides.watchdog_poll_ms.value_or(
      std::min({usual, plan.watchdog_detection_ms, plan.watchdog_restoration_ms}));
}

// Switches are alike if they have the same model and the same number of each kind of port.
std::vector<SwitchPlan> kinds_of_switches(const Network& network) {
  using Key = std::pair<std::uint32_t, std::map<PortKey, std::size_t>>;
  std::map<Key, std::size_t> known;
  std::vector<SwitchPlan> plans;
  for (std::uint32_t n = 0; n < network.nodes.size(); ++n) {
    const auto& node = network.nodes[n];
    if (node.kind != NodeKind::switch_) continue;
    Key key{node.model, {}};
    for (const auto port : node.ports) ++key.second[port_key(network, port)];
    const auto [found, added] = known.try_emplace(std::move(key), plans.size());
    if (added) {
      plans.emplace_back();
      plans.back().model = &network.model_of(node);
    }
    plans[found->second].switches.push_back({n});
  }
  return plans;
}

}  // namespace

Plan plan_network(const Network& network, const PlanOptions& options) {
  Plan plan;
  plan.network = &network;
  plan.switches = kinds_of_switches(network);
  for (auto& kind : plan.switches) {
    add_ports(network, kind);
    kind.split = split_of(network, kind);
    set_thresholds(network, kind);
  }
  const Routes routes(network);
  plan.rtt_ns = network.hints.rtt_ns.value_or(longest_rtt_ns(network, routes));
  plan.hot_links = hot_links(network, routes);
  plan.deadlock = find_deadlocks(network, options.failures);
  plan.findings = find_faults(plan);
  return plan;
}

}  // namespace weir::fabric
