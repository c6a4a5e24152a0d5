#include "fabric/plan/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fabric/picture/page.hpp"
#include "fabric/plan/threshold.hpp"

namespace weir::fabric {
namespace {

constexpr double bits_per_byte = 8;
constexpr double negligible = 1e-6;  // a share of the time

double gbps(const PortPlan& port) { return static_cast<double>(port.speed_bps) / 1e9; }

class Findings {
 public:
  explicit Findings(const Plan& plan) : plan_(plan), network_(*plan.network) {}

  std::vector<Finding> all() {
    for (const auto& kind : plan_.switches) {
      capacity(kind);
      ports(kind);
      headroom(kind);
      if (kind.split.fits) {
        for (const auto& port : kind.ports) marks(kind, port);
        incast(kind);
        shared_pool(kind);
        storm(kind);
      }
    }
    asymmetric_cables();
    classes();
    deadlock();
    hot();
    std::ranges::stable_sort(out_, std::greater{}, &Finding::severity);
    return std::move(out_);
  }

 private:
  void add(Severity severity, std::string code, std::string text, Place place = {}) {
    out_.push_back({severity, std::move(code), std::move(text), std::move(place)});
  }

  std::string who(const SwitchPlan& kind) const {
    const auto& first = network_[kind.switches.front()].name;
    return kind.switches.size() == 1
               ? fmt::format("{} ({})", first, kind.model->name)
               : fmt::format("{} and {} equal {} ({})", first, kind.switches.size() - 1,
                             kind.switches.size() == 2 ? "switch" : "switches", kind.model->name);
  }

  const Place& place(const SwitchPlan& kind) const { return network_[kind.switches.front()].place; }

  // Not a fault: the plan for the ports is valid, and the model's figure may be for another variant.
  void capacity(const SwitchPlan& kind) {
    if (!kind.model->capacity_bps) return;
    double ports_bps = 0;
    for (const auto& port : kind.ports)
      ports_bps += static_cast<double>(port.ports_per_switch) * static_cast<double>(port.speed_bps);
    if (ports_bps <= static_cast<double>(*kind.model->capacity_bps)) return;
    add(Severity::warning, "ports_beyond_capacity",
        fmt::format("{}: {} ports have {:g} Gb/s together, more than the model's {:g}; use a larger switch, "
                    "or fewer or "
                    "slower links",
                    who(kind), kind.port_count, ports_bps / 1e9,
                    static_cast<double>(*kind.model->capacity_bps) / 1e9),
        place(kind));
  }

  // A fault: config_db.json would name ports that the switch lacks.
  void ports(const SwitchPlan& kind) {
    if (kind.model->ports.empty())
      add(Severity::note, "ports_not_known",
          fmt::format(
              "{}: the model does not list the switch's ports, so unnamed ports count lanes of 25 Gb/s; "
              "give its [[switch_model]] a port_config before using --sonic",
              who(kind)),
          place(kind));
    std::vector<std::string> missing;
    for (const auto& port : kind.ports)
      for (const auto id : port.ports)
        if (!network_[id].on_front)
          missing.push_back(fmt::format("{}:{}", network_[network_[id].node].name, network_[id].name));
    if (missing.empty()) return;
    constexpr std::size_t named = 3;
    const auto more = missing.size() - std::min(missing.size(), named);
    missing.resize(missing.size() - more);
    add(Severity::fault, "no_such_port",
        fmt::format("{}: the model has no port for {}{}; use a switch with more or faster ports, name other "
                    "ports, or "
                    "give its [[switch_model]] your switch's port_config",
                    who(kind), fmt::join(missing, ", "), more ? fmt::format(" and {} more", more) : ""),
        place(kind));
  }

  void headroom(const SwitchPlan& kind) {
    const auto& split = kind.split;
    if (!split.fits)
      add(Severity::fault, "headroom_does_not_fit",
          fmt::format(
              "{}: headroom {} + guaranteed {} + reserved {} bytes do not fit into its buffer of {}; use "
              "fewer "
              "lossless priorities, shorter cables, a smaller lossless_mtu, or headroom_pool = \"shared\"",
              who(kind), grouped(split.headroom), grouped(split.guaranteed), grouped(split.reserved),
              grouped(split.buffer)),
          place(kind));
    for (const auto& port : kind.ports)
      if (port.in_principle.bytes > port.xoff && network_.overrides.xoff_bytes)
        add(Severity::warning, "headroom_short",
            fmt::format("{}, ports of {:g}G to {} over {:g} m: plan.xoff says {} bytes, but {} may still "
                        "arrive after XOFF; lossless packets will be lost; leave plan.xoff out, or raise it "
                        "that far",
                        who(kind), gbps(port), port.peer, port.cable.length_m, grouped(port.xoff),
                        grouped(port.in_principle.bytes)),
            network_.overrides.place);
      else if (port.in_principle.bytes > port.xoff)
        add(Severity::warning, "headroom_short",
            fmt::format(
                "{}, ports of {:g}G to {} over {:g} m: SONiC's formula gives an xoff of {} bytes, but first "
                "principles with packets of {} bytes require {}; expect loss if packets are that small; set "
                "headroom = \"larger\", or smallest_packet to your packets' size",
                who(kind), gbps(port), port.peer, port.cable.length_m, grouped(port.xoff),
                port.in_principle.worst_packet_bytes, grouped(port.in_principle.bytes)),
            place(kind));
  }

  void marks(const SwitchPlan& kind, const PortPlan& port) {
    const auto& marks = port.marks;
    if (!marks.before_pfc)
      add(Severity::warning, "ecn_above_pfc",
          fmt::format("{}, ports of {:g}G: ECN acts after PFC: {}; PFC will pause senders before ECN slows "
                      "them down; lower kmax, or raise dynamic_th",
                      who(kind), gbps(port), marks.inequality),
          network_.overrides.kmax_bytes ? network_.overrides.place : place(kind));
    if (marks.kmin_bytes < 2 * network_.classes.lossless_mtu_bytes)
      add(Severity::warning, "kmin_below_two_frames",
          fmt::format(
              "{}, ports of {:g}G: Kmin of {} bytes is less than two frames of {}: an uncongested queue "
              "will be marked, which costs throughput",
              who(kind), gbps(port), grouped(marks.kmin_bytes), network_.classes.lossless_mtu_bytes),
          place(kind));
  }

  // A CNP at most halves a rate, and a flow gets one every 50 us: the bytes that `senders` at line rate pile
  // up while their sum falls to one line rate.
  static constexpr double cnp_interval_ns = 50e3;
  static double settling_bytes(double senders, double bytes_per_ns) {
    double bytes = 0;
    for (double rate = senders; rate > 1; rate /= 2) bytes += (rate - 1) * bytes_per_ns * cnp_interval_ns;
    return bytes;
  }

  // With `incast` senders at line rate and an empty queue: when does PFC start, and has a CNP
  // reached the senders by then?
  void incast(const SwitchPlan& kind) {
    const auto senders = network_.hints.incast;
    if (senders < 2 || kind.port_count < 2) return;
    for (const auto& port : kind.ports) {
      if (port.peer != "hosts") continue;
      const double bytes_per_ns = static_cast<double>(port.speed_bps) / bits_per_byte / 1e9;
      const auto ingresses = static_cast<double>(std::min<std::size_t>(senders, kind.port_count - 1));
      const double each =
          static_cast<double>(limit_of_each(kind.split.shared, alpha_of(kind.dynamic_th), ingresses));
      const double growth = (senders - 1) * bytes_per_ns;
      const double until_pfc_ns = (ingresses * each - static_cast<double>(port.marks.kmin_bytes)) / growth;
      const bool late = until_pfc_ns < plan_.rtt_ns;
      const double settling = settling_bytes(senders, bytes_per_ns);
      if (!late && ingresses * each < settling)
        add(Severity::warning, "pfc_before_dcqcn_settles",
            fmt::format(
                "{}: {} hosts of {:g}G that send to one need {:.0f} CNPs, {:g} us apart, to slow down to "
                "their share; {} bytes pile up until then, and XOFF comes at {}; expect pauses, raise "
                "dynamic_th, or free buffer for it",
                who(kind), senders, gbps(port), std::ceil(std::log2(senders)), cnp_interval_ns / 1000,
                grouped(static_cast<std::uint64_t>(settling)),
                grouped(static_cast<std::uint64_t>(ingresses * each))),
            network_.overrides.dynamic_th ? network_.overrides.place : place(kind));
      add(late ? Severity::warning : Severity::note, late ? "pfc_before_first_cnp" : "incast",
          fmt::format("{}: when {} hosts of {:g}G send to one, XOFF comes {:.1f} us {} Kmin; a mark takes "
                      "about {:.1f} us to slow a sender{}",
                      who(kind), senders, gbps(port), std::abs(until_pfc_ns) / 1000,
                      until_pfc_ns < 0 ? "before" : "after", plan_.rtt_ns / 1000,
                      late ? ": PFC will act first; lower Kmin, raise dynamic_th, or expect pauses"
                           : ", so ECN acts first"),
          place(kind));
    }
  }

  // That more than `enough` of `groups` are congested, if each is independently and `mean` of them are on
  // average.
  static double chance_of_more(std::size_t groups, double mean, std::size_t enough) {
    const auto n = static_cast<double>(groups);
    const double p = std::min(1.0, mean / n);
    if (p == 1) return enough < groups ? 1 : 0;
    double chance = 0;
    for (std::size_t k = enough + 1; k <= groups; ++k) {
      const auto many = static_cast<double>(k);
      const double choose = std::lgamma(n + 1) - std::lgamma(many + 1) - std::lgamma(n - many + 1);
      chance += std::exp(choose + many * std::log(p) + (n - many) * std::log1p(-p));
    }
    return std::min(chance, 1.0);
  }

  void shared_pool(const SwitchPlan& kind) {
    if (kind.split.headroom >= kind.split.headroom_sum) return;
    std::uint64_t largest = 0;
    for (const auto& port : kind.ports) largest = std::max(largest, port.xoff);
    const auto groups = kind.port_count * network_.classes.lossless.size();
    const auto enough = kind.split.headroom / largest;
    const auto mean = network_.hints.congested_queues;
    const double chance = chance_of_more(groups, mean, enough);
    add(chance > negligible ? Severity::warning : Severity::note, "shared_headroom",
        fmt::format("{}: the shared headroom pool of {} bytes is enough for {} of {} priority groups in XOFF "
                    "at once; "
                    "with more, packets are lost; if {} are congested on average ([traffic] "
                    "congested_queues), each by "
                    "chance, it is too small {:.2g} % of the time; set headroom_pool in [plan], up to {}",
                    who(kind), grouped(kind.split.headroom), enough, groups, mean, 100 * chance,
                    kind.split.headroom_sum),
        place(kind));
  }

  void storm(const SwitchPlan& kind) {
    std::size_t hosts = 0;
    double slowest_bps = 0;
    for (const auto& port : kind.ports)
      if (port.peer == "hosts") {
        hosts += port.ports_per_switch;
        slowest_bps = static_cast<double>(port.speed_bps);
      }
    if (!hosts) return;
    const double fill_us = static_cast<double>(kind.xoff_limit_one) * bits_per_byte / slowest_bps * 1e6;
    add(Severity::note, "storm_exposure",
        fmt::format("{}: a host that pauses endlessly stops its switch for this priority after {:.0f} us of "
                    "traffic to it, and the switches above soon after, until the watchdog acts ({} after "
                    "{} ms)",
                    who(kind), fill_us, network_.overrides.watchdog_action, kind.watchdog_detection_ms),
        place(kind));
  }

  void asymmetric_cables() {
    for (const auto& link : network_.links) {
      if (link.cable.length_m == link.cable.return_length_m) continue;
      add(Severity::warning, "asymmetric_cable",
          fmt::format("{} - {}: {:g} m one way and {:g} m the other; headroom is planned for their sum, but "
                      "SONiC has one length per port, so it gets the mean",
                      network_[network_[link.a].node].name, network_[network_[link.b].node].name,
                      link.cable.length_m, link.cable.return_length_m),
          link.place);
    }
    // Unequal cables between the same two switches: equal-cost paths of unequal headroom and delay.
    std::set<std::pair<NodeId, NodeId>> told;
    std::map<std::pair<NodeId, NodeId>, double> lengths;
    for (const auto& link : network_.links) {
      const std::pair pair(std::min(network_[link.a].node, network_[link.b].node),
                           std::max(network_[link.a].node, network_[link.b].node));
      const auto [known, added] = lengths.try_emplace(pair, link.cable.length_m);
      if (!added && known->second != link.cable.length_m && told.insert(pair).second)
        add(Severity::warning, "unequal_parallel_cables",
            fmt::format("{} - {}: parallel links of {:g} m and {:g} m; packets to one destination "
                        "take different times, and the ports need different headroom",
                        network_[pair.first].name, network_[pair.second].name, known->second,
                        link.cable.length_m),
            link.place);
    }
  }

  void classes() {
    lossless_dscps();
    for (const auto priority : network_.classes.lossless) {
      if (std::ranges::find(network_.classes.dscp_to_priority, priority) ==
          network_.classes.dscp_to_priority.end())
        add(Severity::warning, "unused_priority",
            fmt::format("priority {} is lossless, but no DSCP maps to it: its headroom is wasted", priority));
      if (std::ranges::find(network_.classes.strict, priority) != network_.classes.strict.end())
        add(Severity::warning, "strict_lossless_priority",
            fmt::format("priority {} is lossless and served before all others: it can starve them",
                        priority));
    }
  }

  void lossless_dscps() {
    const auto& classes = network_.classes;
    std::string all;
    for (std::size_t dscp = 0; dscp < dscps; ++dscp)
      if (const auto priority = classes.dscp_to_priority[dscp]; classes.is_lossless(priority))
        all += fmt::format("{}{} -> {}", all.empty() ? "" : ", ", dscp, priority);
    if (!all.empty())
      add(Severity::note, "lossless_dscps",
          fmt::format(
              "packets of DSCP {} are lossless, and all others may be dropped: make sure that your NICs mark "
              "with these",
              all));
    if (classes.is_lossless(classes.dscp_to_priority[0]))
      add(Severity::warning, "best_effort_is_lossless",
          fmt::format(
              "priority {} is lossless and includes unmarked packets (DSCP 0), so any traffic can pause the "
              "network; map DSCP 0 to another priority with [dscp]",
              classes.dscp_to_priority[0]));
  }

  void deadlock() {
    for (const auto& cycle : plan_.deadlock.cycles) {
      std::string held;
      for (const auto& hop : cycle.hops)
        held += fmt::format("{}{} (packets for {})", held.empty() ? "" : ", ",
                            network_[network_[hop.out].node].name, network_[hop.held_by].name);
      add(Severity::fault, "cyclic_buffer_dependency",
          fmt::format(
              "buffers can wait for each other in a cycle: {}; with the wrong traffic all of them stop. "
              "Those that wait: {}. Route up-down, or take one of these links out of the lossless "
              "paths{}",
              cycle.text, held,
              network_.detours.empty() ? ""
                                       : "; or give packets on a detour lossless priorities of "
                                         "their own, with remapped = true"));
    }
    for (const auto& [failed, cycle] : plan_.deadlock.after_failure) {
      const auto& link = network_[failed];
      add(Severity::warning, "cyclic_after_failure",
          fmt::format(
              "if the link {} - {} fails, rerouted traffic lets buffers wait for each other in a cycle: {}",
              network_[network_[link.a].node].name, network_[network_[link.b].node].name, cycle.text),
          link.place);
    }
    if (const auto more = plan_.deadlock.failures_with_cycle - plan_.deadlock.after_failure.size())
      add(Severity::warning, "cyclic_after_failure", fmt::format("{} more failed links make a cycle", more));
  }

  void hot() {
    if (plan_.hot_links.empty()) return;
    const auto& worst = plan_.hot_links.front();
    add(Severity::note, "oversubscribed",
        fmt::format(
            "{} links are oversubscribed: if every host sends equally to all others, {} -> {} has to carry "
            "{:.0f} % of its speed; congestion begins there",
            plan_.hot_links.size(), network_[network_[worst.port].node].name,
            network_[network_.neighbor(worst.port)].name, worst.share * 100));
  }

  const Plan& plan_;
  const Network& network_;
  std::vector<Finding> out_;
};

}  // namespace

std::vector<Finding> find_faults(const Plan& plan) { return Findings(plan).all(); }

}  // namespace weir::fabric
