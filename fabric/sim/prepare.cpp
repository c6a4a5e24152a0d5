// Turns a scenario into arrays: nodes and ports of the network, buffers from its plan, flows from workloads.
#include <algorithm>
#include <cmath>
#include <map>

#include "fabric/plan/threshold.hpp"
#include "fabric/sim/scenario.hpp"
#include "rnic/congestion/presets.hpp"

namespace weir::fabric::sim {
namespace {

constexpr std::string_view windowed_preset = "hpcc-window";  // hpcc, with a window

CongestionControl control_named(std::string_view name) {
  constexpr std::pair<std::string_view, CongestionControl> by_name[] = {{"dcqcn", CongestionControl::dcqcn},
                                                                        {"dctcp", CongestionControl::dctcp},
                                                                        {"hpcc", CongestionControl::hpcc},
                                                                        {"swift", CongestionControl::swift}};
  for (const auto& [word, control] : by_name)
    if (word == name) return control;
  return CongestionControl::off;
}

void apply_dcqcn(Transport& transport, const Knobs& knobs) {
  transport.control = control_named(knobs.congestion_control);
  auto& p = transport.dcqcn_parameters;
  for (const auto& preset : rnic::congestion::dcqcn_presets())
    if (preset.name == (knobs.preset == windowed_preset ? "hpcc" : knobs.preset)) p = preset.parameters;
  if (knobs.g) p.g = *knobs.g;
  if (knobs.additive_bps) p.additive_increase = *knobs.additive_bps;
  if (knobs.hyper_bps) p.hyper_increase = *knobs.hyper_bps;
  if (knobs.minimum_bps) p.minimum_rate = *knobs.minimum_bps;
  if (knobs.increase_bytes) p.increase_bytes = static_cast<std::uint64_t>(*knobs.increase_bytes);
  if (knobs.largest_decrease) p.largest_decrease = *knobs.largest_decrease;
  if (knobs.initial_alpha) p.initial_alpha = *knobs.initial_alpha;
  if (knobs.reference_bps) p.reference_rate = *knobs.reference_bps;
  if (!knobs.clamp_target.empty()) p.lower_target_always = knobs.clamp_target == "yes";
  if (knobs.recovery_steps) p.fast_recovery_steps = static_cast<std::uint32_t>(*knobs.recovery_steps);
  const auto time = [](std::uint64_t& slot, std::optional<double> ns) {
    slot = from_ns(ns ? *ns : static_cast<double>(slot));
  };
  time(p.alpha_interval, knobs.alpha_ns);
  time(p.increase_interval, knobs.increase_ns);
  time(p.notification_interval, knobs.cnp_ns);
  time(p.decrease_interval, knobs.decrease_ns);
}

// One bandwidth-delay product in flight, less as the rate falls, is what HPCC's scripts call "dcqcn_vwin",
// and what the controls by acknowledgements are about: their papers compute a window.
void apply_window(Transport& transport, const Knobs& knobs, double rtt_ns) {
  const bool windowed = by_acknowledgements(transport.control) ||
                        (transport.control == CongestionControl::dcqcn && knobs.preset == windowed_preset);
  transport.base_rtt = from_ns(rtt_ns);
  transport.window_time = from_ns(knobs.window_rtts.value_or(windowed ? 1 : 0) * rtt_ns);
  transport.window_by_rate = knobs.window_by_rate.empty() ? windowed : knobs.window_by_rate == "yes";
}

class Preparation {
 public:
  Preparation(const Scenario& scenario, const Knobs& knobs)
      : scenario_(scenario), network_(*scenario.network), knobs_(knobs) {}

  Prepared run() {
    nodes_and_ports();
    for (const auto& plan : scenario_.plan.switches) switches(plan);
    out_.fabric.routes = route_table(network_, out_.fabric, {});
    experiment();
    faults();
    return std::move(out_);
  }

 private:
  void nodes_and_ports() {
    auto& fabric = out_.fabric;
    for (std::uint32_t n = 0; n < network_.nodes.size(); ++n) {
      const auto& node = network_.nodes[n];
      fabric.nodes.push_back({node.name, node.kind == NodeKind::host, none});
      if (node.kind == NodeKind::host) fabric.hosts.push_back(n);
    }
    for (std::uint32_t p = 0; p < network_.ports.size(); ++p) {
      const auto& from = network_.ports[p];
      PortSettings port;
      port.node = from.node.index;
      port.peer = from.peer.index;
      port.name = from.name;
      const auto bps = network_.speed_bps({p});
      port.gbps = static_cast<double>(bps) / 1e9;
      port.delay = from_ns(network_.outbound_delay_ns({p}));
      port.pipeline = forwarding(from.node);
      // The plan's headroom gives the peer the time of IEEE 802.3 to stop, counted from the frame that
      // crossed XOFF. The pipeline in front of our MMU takes a part of that and the peer gets the rest, so
      // that the simulated margin equals the planned one.
      const auto& peer = network_[network_.neighbor({p})];
      if (peer.kind == NodeKind::switch_) {
        const auto& model = network_.model_of(peer);
        const double response =
            static_cast<double>(pause_response_quanta(bps)) * quantum_bits * 1e9 / static_cast<double>(bps);
        port.pause_response =
            from_ns(std::max(0.0, model.pfc_generation_ns + response - model.forwarding_ns));
      }
      fabric.ports.push_back(std::move(port));
    }
  }

  Ticks forwarding(NodeId id) const {
    const auto& node = network_[id];
    return node.kind == NodeKind::host ? 0 : from_ns(network_.model_of(node).forwarding_ns);
  }

  // Headroom beyond the plan is taken from the shared pool.
  std::uint64_t shared_bytes(const SwitchPlan& plan) const {
    if (knobs_.shared_bytes) return static_cast<std::uint64_t>(*knobs_.shared_bytes);
    if (!knobs_.headroom_bytes) return plan.split.shared;
    std::uint64_t groups = 0;
    for (const auto& port : plan.ports) groups += port.ports_per_switch * network_.classes.lossless.size();
    const auto taken = plan.split.reserved + plan.split.guaranteed +
                       groups * static_cast<std::uint64_t>(*knobs_.headroom_bytes);
    return std::min(plan.split.shared, plan.split.buffer - std::min(plan.split.buffer, taken));
  }

  void switches(const SwitchPlan& plan) {
    auto& fabric = out_.fabric;
    const auto index = static_cast<std::uint32_t>(fabric.switches.size());
    SwitchSettings settings;
    settings.cell_bytes = plan.model->cell_bytes;
    settings.shared_bytes = shared_bytes(plan);
    settings.headroom_pool_bytes =
        plan.model->headroom_pool == HeadroomPool::shared && !knobs_.headroom_bytes ? plan.split.headroom : 0;
    settings.pause_quanta = static_cast<std::uint32_t>(knobs_.pause_quanta);
    for (unsigned i = 0; i < sim::priorities; ++i) {
      auto& priority = settings.priority[i];
      priority.lossless = network_.classes.is_lossless(i);
      const auto& strict = network_.classes.strict;
      priority.strict = std::ranges::find(strict, i) != strict.end();
      priority.weight = priority.lossless ? lossless_weight : lossy_weight;
      priority.alpha = 8;
      if (!priority.lossless) continue;
      priority.alpha = knobs_.alpha ? *knobs_.alpha : alpha_of(plan.dynamic_th);
      priority.xon_offset_bytes = static_cast<std::uint32_t>(
          knobs_.xon_offset_bytes ? *knobs_.xon_offset_bytes : static_cast<double>(plan.xon_offset));
    }
    fabric.switches.push_back(settings);
    for (const auto id : plan.switches) fabric.nodes[id.index].settings = index;
    for (const auto& port : plan.ports)
      for (const auto id : port.ports) port_settings(fabric.ports[id.index], port);
  }

  void port_settings(PortSettings& port, const PortPlan& plan) const {
    port.own_wred = true;
    for (unsigned i = 0; i < sim::priorities; ++i) {
      if (!network_.classes.is_lossless(i)) continue;
      port.headroom_bytes[i] = static_cast<std::uint32_t>(
          knobs_.headroom_bytes ? *knobs_.headroom_bytes : static_cast<double>(plan.xoff));
      port.guaranteed_bytes[i] = static_cast<std::uint32_t>(plan.guaranteed());
      auto& wred = port.wred[i];
      wred.kmax_bytes = static_cast<std::uint32_t>(
          knobs_.kmax_bytes ? *knobs_.kmax_bytes : static_cast<double>(plan.marks.kmax_bytes));
      wred.kmin_bytes =
          std::min(wred.kmax_bytes,
                   static_cast<std::uint32_t>(
                       knobs_.kmin_bytes ? *knobs_.kmin_bytes : static_cast<double>(plan.marks.kmin_bytes)));
      wred.pmax = knobs_.pmax ? *knobs_.pmax : plan.marks.pmax;
    }
  }

  void experiment() {
    auto& experiment = out_.experiment;
    experiment.seed = knobs_.seed;
    experiment.duration = from_ns(knobs_.duration_ns);
    experiment.counter_interval =
        from_ns(knobs_.sample_ns != 0 ? knobs_.sample_ns : std::ceil(knobs_.duration_ns / 200));
    experiment.sample_interval = experiment.counter_interval;
    if (knobs_.sample_ns == 0) {  // many runs end early: start with fine samples, then thin them
      experiment.sample_interval = std::max<Ticks>(1, experiment.sample_interval / 16);
      experiment.most_samples = 400;
    }
    experiment.deadlock_check = from_ns(knobs_.deadlock_check_ns);
    experiment.mark_at = knobs_.mark_at;
    experiment.transport = knobs_.transport;
    experiment.transport.retransmission_timeout = from_ns(knobs_.timeout_ns);
    apply_dcqcn(experiment.transport, knobs_);
    apply_window(experiment.transport, knobs_, scenario_.plan.rtt_ns);
    experiment.watchdog = scenario_.watchdog;
    const auto priority = static_cast<std::uint8_t>(knobs_.priority);
    for (const auto& storm : scenario_.storms)
      experiment.storms.push_back({storm.start, storm.end.value_or(experiment.duration), storm.host,
                                   storm.priority.value_or(priority)});
    for (std::size_t i = 0; i < scenario_.workloads.size(); ++i) {
      Workload workload = scenario_.workloads[i];
      workload.priority = workload.priority.value_or(priority);
      workload.load *= knobs_.load_factor;
      if (workload.until == 0) workload.until = experiment.duration;
      append_flows(experiment, workload, static_cast<std::uint16_t>(i), out_.fabric);
      if (auto collective = collective_of(workload, static_cast<std::uint16_t>(i)))
        experiment.collectives.push_back(std::move(*collective));
    }
  }

  void faults() {
    std::map<Ticks, std::pair<std::vector<LinkId>, std::vector<LinkId>>> changes;  // by time: down, up
    for (const auto& failure : scenario_.failures) {
      const std::uint32_t port = network_[failure.link].a.index;
      out_.experiment.faults.push_back({failure.at, port, false, nullptr});
      changes[failure.at + failure.convergence].first.push_back(failure.link);
      if (failure.back == 0) continue;
      out_.experiment.faults.push_back({failure.back, port, true, nullptr});
      changes[failure.back + failure.convergence].second.push_back(failure.link);
    }
    std::vector<LinkId> gone;
    for (const auto& [time, change] : changes) {
      gone.insert(gone.end(), change.first.begin(), change.first.end());
      for (const auto link : change.second)
        if (const auto at = std::find(gone.begin(), gone.end(), link); at != gone.end()) gone.erase(at);
      out_.experiment.faults.push_back(
          {time, none, false, std::make_shared<const RouteTable>(route_table(network_, out_.fabric, gone))});
    }
  }

  const Scenario& scenario_;
  const Network& network_;
  const Knobs& knobs_;
  Prepared out_;
};

}  // namespace

Prepared prepare(const Scenario& scenario, const Knobs& knobs) { return Preparation(scenario, knobs).run(); }

RouteTable route_table(const Network& network, const Fabric& fabric, std::span<const LinkId> failed) {
  const Routes routes(network, failed);
  RouteTable table;
  table.hosts = static_cast<std::uint32_t>(fabric.hosts.size());
  std::uint32_t rows = 0;
  for (const auto& node : network.nodes)
    table.row.push_back(node.kind == NodeKind::host && node.ports.size() == 1 ? none : rows++);
  table.group.assign(std::size_t{rows} * table.hosts, 0);
  table.first.assign(1, 0);  // group 0: unreachable
  table.count.assign(1, 0);
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  std::vector<std::uint32_t> ports;
  for (std::uint32_t n = 0; n < fabric.nodes.size(); ++n) {
    if (table.row[n] == none) continue;
    std::span<const PortId> last;  // neighbouring hosts mostly share their ports
    std::uint32_t last_group = 0;
    for (std::uint32_t h = 0; h < table.hosts; ++h) {
      const auto next = routes.next_ports({n}, {fabric.hosts[h]});
      std::uint32_t group = last_group;
      if (next.data() != last.data() || next.size() != last.size()) {
        ports.clear();
        for (const auto port : next) ports.push_back(port.index);
        group = 0;
        if (!ports.empty()) {
          const auto [at, added] = known.try_emplace(ports, static_cast<std::uint32_t>(table.first.size()));
          group = at->second;
          if (added) {
            table.first.push_back(static_cast<std::uint32_t>(table.ports.size()));
            table.count.push_back(static_cast<std::uint32_t>(ports.size()));
            table.ports.insert(table.ports.end(), ports.begin(), ports.end());
          }
        }
        last = next;
        last_group = group;
      }
      table.group[std::size_t{table.row[n]} * table.hosts + h] = group;
    }
  }
  return table;
}

}  // namespace weir::fabric::sim
