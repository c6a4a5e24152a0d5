#include <fmt/format.h>

#include "fabric/picture/page.hpp"
#include "fabric/plan/picture.hpp"
#include "fabric/plan/report.hpp"
#include "fabric/plan/threshold.hpp"

namespace weir::fabric {
namespace {

void findings(std::string& out, const Plan& plan) {
  out += "<ul class=\"list\">\n";
  for (const auto& finding : plan.findings)
    out += fmt::format("<li class=\"{0}\"><b>{0}</b> {1}</li>\n", name_of(finding.severity),
                       escaped(finding.text));
  if (plan.findings.empty()) out += "<li class=\"note\">no findings</li>\n";
  out += "</ul>\n";
}

void terms(std::string& out, std::string_view title, const std::vector<HeadroomTerm>& list,
           std::string_view sum) {
  out += fmt::format("<table><tr><th>{}</th><th>bytes</th><th>ns</th><th>cells</th></tr>\n", title);
  for (const auto& term : list)
    if (term.bytes > 0)
      out += fmt::format("<tr><td>{}</td><td>{:.0f}</td><td>{:.1f}</td><td>{:.1f}</td></tr>\n", term.name,
                         term.bytes, term.ns, term.cells);
  out += fmt::format("<tr><td colspan=\"4\">{}</td></tr></table>\n", sum);
}

void port_section(std::string& out, const SwitchPlan& kind, const PortPlan& port) {
  out += fmt::format("<h3>{} ports of {} to {}, {}</h3>\n", port.ports_per_switch, speed_text(port.speed_bps),
                     escaped(port.peer), cable_text(port.cable));
  out +=
      "<figure><figcaption>One priority group as it fills: yellow marks with rising probability, dark green "
      "marks every packet, orange is headroom.</figcaption>\n";
  out += queue_picture(kind, port) + "</figure>\n";
  out += fmt::format("<p>Planned: xoff {}, xon {}, size {} bytes.</p>\n", grouped(port.xoff),
                     grouped(port.headroom.xon), grouped(port.size()));
  out += fmt::format("<p><code>{}; Pmax {:.0f} %</code></p>\n<div class=\"pair\">\n",
                     escaped(port.marks.inequality), port.marks.pmax * 100);
  terms(out, "headroom, SONiC's formula", port.headroom.terms,
        fmt::format("xoff {}; x {:.3f} for small packets in cells{}", grouped(port.headroom.xoff),
                    port.headroom.cell_waste,
                    port.published_xoff
                        ? fmt::format("; SONiC's table for this switch has {}", grouped(*port.published_xoff))
                        : ""));
  terms(out, "headroom, first principles", port.in_principle.terms,
        fmt::format("{} bytes in {} cells; packets of {} bytes are the worst case",
                    grouped(port.in_principle.bytes), port.in_principle.cells,
                    port.in_principle.worst_packet_bytes));
  out += "</div>\n";
}

// A share as a percentage, with a bar.
std::string bar_cell(double share) {
  return fmt::format(
      "<td class=\"bar\" style=\"background-size: {0:.1f}% 3px; background-position: 0 100%\">{0:.2f} %</td>",
      100 * share);
}

void alpha_table(std::string& out, const SwitchPlan& kind, const Network& network) {
  const auto n = network.hints.congested_queues;
  out += fmt::format(
      "<table><tr><th>dynamic_th</th><th>alpha</th><th>one queue alone</th><th>each of {}</th><th>then "
      "free</th></tr>\n",
      n);
  for (int th = least_dynamic_th; th <= most_dynamic_th; ++th) {
    const auto alpha = alpha_of(th);
    out += fmt::format(
        "<tr{}><td>{}</td><td>{}</td>{}{}{}</tr>\n", th == kind.dynamic_th ? " class=\"chosen\"" : "", th,
        alpha < 1 ? fmt::format("1/{:.0f}", 1 / alpha) : fmt::format("{:.0f}", alpha),
        bar_cell(share_of_each(alpha, 1)), bar_cell(share_of_each(alpha, n)), bar_cell(share_free(alpha, n)));
  }
  out += fmt::format(
      "</table>\n<p>XOFF at {} bytes when alone, {} with {} congested; XON {} bytes below. Watchdog: "
      "detection {} ms, restoration {} ms, poll {} ms, {}.</p>\n",
      grouped(kind.xoff_limit_one), grouped(kind.xoff_limit), n, grouped(kind.xon_offset),
      kind.watchdog_detection_ms, kind.watchdog_restoration_ms, kind.watchdog_poll_ms,
      network.overrides.watchdog_action);
}

}  // namespace

std::string html_report(const Plan& plan) {
  const auto& network = *plan.network;
  std::string out = page_begin(network.name + ": plan");
  out += fmt::format(
      "<h1>{}</h1>\n<p class=\"sub\">lossless priorities {}; unloaded round trip {:.1f} us; {} single link "
      "failures checked, {} with a cycle of buffers</p>\n",
      escaped(network.name), fmt::join(network.classes.lossless, ", "), plan.rtt_ns / 1000,
      plan.deadlock.failures_examined, plan.deadlock.failures_with_cycle);
  out += "<figure>" + topology_picture(plan) + "</figure>\n";
  findings(out, plan);
  for (const auto& kind : plan.switches) {
    out += fmt::format("<h2>{}</h2>\n", escaped(title_of(kind, network)));
    out += "<figure>" + buffer_picture(kind, network) + "</figure>\n";
    alpha_table(out, kind, network);
    for (const auto& port : kind.ports) port_section(out, kind, port);
  }
  return out + page_end();
}

}  // namespace weir::fabric
