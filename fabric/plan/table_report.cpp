#include <fmt/format.h>

#include <algorithm>

#include "fabric/picture/page.hpp"
#include "fabric/plan/report.hpp"
#include "fabric/plan/threshold.hpp"

namespace weir::fabric {
namespace {

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.1f} %",
                     whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
}

void headroom_lines(std::string& out, const PortPlan& port) {
  out += fmt::format("  {} x {} to {}, {}\n", port.ports_per_switch, speed_text(port.speed_bps), port.peer,
                     cable_text(port.cable));
  out += fmt::format("    {:<32}{:>12}{:>12}{:>10}\n", "headroom, SONiC's formula", "bytes", "ns", "cells");
  for (const auto& term : port.headroom.terms)
    if (term.bytes > 0)
      out +=
          fmt::format("    {:<32}{:>12.0f}{:>12.1f}{:>10.1f}\n", term.name, term.bytes, term.ns, term.cells);
  out += fmt::format("    {:<32}{:>12}   x {:.3f} for small packets in cells, up to KiB\n", "xoff from it",
                     grouped(port.headroom.xoff), port.headroom.cell_waste);
  if (port.published_xoff)
    out += fmt::format("    {:<32}{:>12}\n", "xoff in SONiC's table", grouped(*port.published_xoff));
  out += fmt::format("    {:<32}{:>12}{:>12}{:>10}\n", "headroom, first principles", "bytes", "ns", "cells");
  for (const auto& term : port.in_principle.terms)
    if (term.ns > 0)
      out +=
          fmt::format("    {:<32}{:>12.0f}{:>12.1f}{:>10.1f}\n", term.name, term.bytes, term.ns, term.cells);
  out += fmt::format("    {:<32}{:>12}{:>12.1f}{:>10}   packets of {} bytes are the worst case\n", "needed",
                     grouped(port.in_principle.bytes), port.in_principle.ns, port.in_principle.cells,
                     port.in_principle.worst_packet_bytes);
  out += fmt::format("    planned: xoff {}, xon {}, size {}\n", grouped(port.xoff),
                     grouped(port.headroom.xon), grouped(port.size()));
  out += fmt::format("    ECN: {}; Pmax {:.0f} %\n", port.marks.inequality, port.marks.pmax * 100);
}

void split_lines(std::string& out, const SwitchPlan& kind) {
  const auto& split = kind.split;
  const auto row = [&](std::string_view name, std::uint64_t bytes) {
    out += fmt::format("  {:<12}{:>14}{:>9}\n", name, grouped(bytes), percent(bytes, split.buffer));
  };
  row("reserved", split.reserved);
  row("guaranteed", split.guaranteed);
  row("headroom", split.headroom);
  if (split.headroom < split.headroom_sum)
    out.insert(out.size() - 1, fmt::format("   a pool for {}", grouped(split.headroom_sum)));
  row("shared", split.shared);
  row("buffer", split.buffer);
  if (!split.fits) out += "  DOES NOT FIT\n";
}

void alpha_lines(std::string& out, const SwitchPlan& kind, const Network& network) {
  const auto n = network.hints.congested_queues;
  out += fmt::format("  {:<12}{:>10}{:>12}{:>20}{:>12}\n", "dynamic_th", "alpha", "one queue",
                     fmt::format("each of {}", n), "then free");
  for (int th = least_dynamic_th; th <= most_dynamic_th; ++th) {
    const auto alpha = alpha_of(th);
    out +=
        fmt::format("{} {:<12}{:>10}{:>10.2f} %{:>18.2f} %{:>10.2f} %\n", th == kind.dynamic_th ? '>' : ' ',
                    th, alpha < 1 ? fmt::format("1/{:.0f}", 1 / alpha) : fmt::format("{:.0f}", alpha),
                    100 * share_of_each(alpha, 1), 100 * share_of_each(alpha, n), 100 * share_free(alpha, n));
  }
  out += fmt::format("  XOFF at {} bytes when alone, {} with {} congested; XON {} below\n",
                     grouped(kind.xoff_limit_one), grouped(kind.xoff_limit), n, grouped(kind.xon_offset));
}

}  // namespace

std::string text(const Finding& finding) {
  std::string out;
  if (finding.place.line)
    out = fmt::format("{}:{}:{}: ", *finding.place.file, finding.place.line, finding.place.column);
  return out + fmt::format("{}: {}\n", name_of(finding.severity), finding.text);
}

std::string speed_text(std::uint64_t bps) { return fmt::format("{:g}G", static_cast<double>(bps) / 1e9); }

std::string cable_text(const Cable& cable) {
  if (cable.length_m == cable.return_length_m)
    return fmt::format("{:g} m {}", cable.length_m, name_of(cable.kind));
  return fmt::format("{:g} m out, {:g} m back {}", cable.length_m, cable.return_length_m,
                     name_of(cable.kind));
}

std::string title_of(const SwitchPlan& kind, const Network& network) {
  const auto& first = network[kind.switches.front()].name;
  if (kind.switches.size() == 1)
    return fmt::format("{} ({}, {} ports)", first, kind.model->name, kind.port_count);
  return fmt::format("{} ... {} ({} switches, {}, {} ports each)", first, network[kind.switches.back()].name,
                     kind.switches.size(), kind.model->name, kind.port_count);
}

std::string table_report(const Plan& plan) {
  const auto& network = *plan.network;
  const auto hosts = std::ranges::count(network.nodes, NodeKind::host, &Node::kind);
  std::string out = fmt::format("{}: {} switches, {} hosts, {} links; lossless priorities {}\n", network.name,
                                network.nodes.size() - static_cast<std::size_t>(hosts), hosts,
                                network.links.size(), fmt::join(network.classes.lossless, ", "));
  for (const auto& kind : plan.switches) {
    out += '\n';
    out += title_of(kind, network);
    out += '\n';
    split_lines(out, kind);
    out += "\n";
    alpha_lines(out, kind, network);
    for (const auto& port : kind.ports) {
      out += "\n";
      headroom_lines(out, port);
    }
    out += fmt::format("\n  watchdog: detection {} ms, restoration {} ms, poll {} ms, {}\n",
                       kind.watchdog_detection_ms, kind.watchdog_restoration_ms, kind.watchdog_poll_ms,
                       network.overrides.watchdog_action);
  }
  const auto& deadlock = plan.deadlock;
  out += fmt::format("\ndeadlock: {}; {} single link failures checked, {} with a cycle\n",
                     deadlock.cycles.empty() ? "no cycle of buffers over the routed paths"
                                             : fmt::format("{} cycle{} of buffers", deadlock.cycles.size(),
                                                           deadlock.cycles.size() == 1 ? "" : "s"),
                     deadlock.failures_examined, deadlock.failures_with_cycle);
  for (const auto& finding : plan.findings) out += text(finding);
  return out;
}

}  // namespace weir::fabric
