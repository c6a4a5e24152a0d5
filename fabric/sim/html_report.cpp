// The report of a run for people: a single HTML page.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "fabric/picture/page.hpp"
#include "fabric/picture/plot.hpp"
#include "fabric/sim/collective.hpp"
#include "fabric/sim/over_time.hpp"
#include "fabric/sim/summary.hpp"

namespace weir::fabric::sim {
namespace {

class Report {
 public:
  Report(const Simulation& simulation, const Summary& summary, const RunTitle& title)
      : simulation_(simulation), fabric_(simulation.fabric()), summary_(summary), title_(title) {}

  std::string text() {
    out_ = page_begin(title_.name + ": " + title_.program);
    head();
    tiles();
    incidents();
    collectives();
    if (title_.network) figure(worst_places(simulation_, *title_.network));
    out_ += over_time(simulation_);
    slowdown();
    ports();
    out_ += page_end();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void figure(const std::string& picture) { out_ += "<figure>" + picture + "</figure>\n"; }

  void head() {
    add("<h1>{}</h1>\n<p class=\"sub\">{} hosts, {} switches; {}; seed {}", escaped(title_.name),
        fabric_.hosts.size(), fabric_.nodes.size() - fabric_.hosts.size(),
        escaped(fmt::format("{}", fmt::join(title_.workloads, ", "))), simulation_.experiment().seed);
    for (const auto& [key, value] : title_.settings) add("; {} = {}", escaped(key), escaped(value));
    out_ += "</p>\n";
    if (summary_.partial)
      add("<p class=\"partial\"><b>Partial:</b> stopped at {} of simulated time, before the end of the "
          "run.</p>\n",
          time(summary_.simulated_us));
  }

  static std::string time(double us) {
    return us >= 1e6   ? fmt::format("{:.3f} s", us / 1e6)
           : us >= 1e3 ? fmt::format("{:.3f} ms", us / 1e3)
                       : fmt::format("{:.2f} us", us);
  }

  void tile(std::string_view value, std::string_view what, bool bad = false) {
    add("<div class=\"tile{}\"><b>{}</b><span>{}</span></div>\n", bad ? " bad" : "", value, what);
  }

  void tiles() {
    const auto& totals = summary_.totals;
    out_ += "<div class=\"tiles\">\n";
    if (totals.live_packets != 0) {
      tile(short_number(static_cast<double>(totals.live_packets)), "packets of programs that arrived");
      tile(short_number(static_cast<double>(totals.live_bytes)) + "B", "of programs, headers included");
    }
    if (summary_.flows != 0) flow_tiles();
    tile(fmt::format("{}", totals.lossless_drops), "drops in lossless classes", totals.lossless_drops != 0);
    tile(fmt::format("{}",
                     totals.ingress_drops - totals.lossless_drops + totals.egress_drops + totals.link_drops),
         "other drops");
    tile(short_number(static_cast<double>(totals.pfc_frames)), "PFC frames");
    tile(time(summary_.paused_us), "paused, all queues together");
    tile(short_number(static_cast<double>(totals.marked)), "packets marked (ECN)");
    tile(short_number(static_cast<double>(totals.cnps)), "CNPs");
    tile(short_number(static_cast<double>(summary_.buffer_most_bytes)) + "B",
         "shared buffer, most in a switch");
    out_ += "</div>\n";
  }

  void flow_tiles() {
    tile(fmt::format("{} / {}", summary_.finished, summary_.flows), "flows finished",
         summary_.finished < summary_.flows);
    const bool some = summary_.finished != 0;
    tile(some ? time(summary_.completion_us.p50) : "none", "completion time, median");
    tile(some ? time(summary_.completion_us.p99) : "none", "completion time, 99th percentile");
    tile(some ? fmt::format("{:.2f}", summary_.slowdown.p99) : "none", "slowdown, 99th percentile");
    tile(rate_text(summary_.goodput_gbps), "goodput, all hosts");
  }

  void collectives() {
    const auto results = collective_results(simulation_);
    if (results.empty()) return;
    out_ += "<h2>Collectives</h2>\n<ul class=\"list\">\n";
    for (const auto& result : results)
      add("<li{}>{}</li>\n", result.completion_us == 0 ? " class=\"fault\"" : "", escaped(describe(result)));
    out_ += "</ul>\n";
  }

  void incidents() {
    if (simulation_.incidents().empty()) return;
    out_ += "<h2>What happened</h2>\n<ul class=\"list\">\n";
    std::size_t shown = 0;
    for (const auto& incident : simulation_.incidents()) {
      if (++shown > 30) break;
      add("<li class=\"fault\">{}</li>\n", escaped(describe(incident, fabric_)));
    }
    if (simulation_.incidents().size() > 30)
      add("<li>and {} more</li>\n", simulation_.incidents().size() - 30);
    out_ += "</ul>\n";
  }

  void slowdown() {
    const auto bins = slowdown_by_size(simulation_);
    if (summary_.finished == 0) return;
    out_ += "<h2>Flows</h2>\n";
    if (bins.size() > 1) {
      Plot plot{.title = "Slowdown by size of flow",
                .x_label = "bytes",
                .y_label = "times the ideal",
                .log_x = true,
                .log_y = true,
                .dots = true};
      const std::pair<const char*, double Percentiles::*> lines[] = {{"99th percentile", &Percentiles::p99},
                                                                     {"95th percentile", &Percentiles::p95},
                                                                     {"median", &Percentiles::p50}};
      for (const auto& [name, member] : lines) {
        Line line{name, {}};
        for (const auto& bin : bins)
          line.points.emplace_back(std::max(1.0, bin.bytes_to), bin.slowdown.*member);
        plot.lines.push_back(std::move(line));
      }
      figure(svg(plot));
    }
    std::map<std::uint16_t, std::vector<double>> times;
    for (std::size_t i = 0; i < simulation_.results().size(); ++i) {
      const auto& result = simulation_.results()[i];
      if (result.arrived != no_time)
        times[simulation_.experiment().flows[i].workload].push_back(to_us(result.arrived - result.started));
    }
    if (times.empty()) return;
    Plot plot{.title = "Completion times",
              .x_label = "us",
              .y_label = "part of the flows that took no longer",
              .log_x = true};
    for (auto& [workload, values] : times) {
      std::sort(values.begin(), values.end());
      Line line{workload < title_.workloads.size() ? title_.workloads[workload] : "flows", {}, true};
      const std::size_t stride = std::max<std::size_t>(1, values.size() / 400);
      line.points.emplace_back(values.front(), 0);
      for (std::size_t i = 0; i < values.size(); i += stride)
        line.points.emplace_back(values[i], static_cast<double>(i + 1) / static_cast<double>(values.size()));
      line.points.emplace_back(values.back(), 1);
      plot.lines.push_back(std::move(line));
    }
    figure(svg(plot));
  }

  void ports() {
    struct Row {
      std::uint32_t port;
      unsigned priority;
      double weight;
    };
    std::vector<Row> rows;
    for (std::uint32_t p = 0; p < fabric_.ports.size(); ++p)
      for (unsigned i = 0; i < priorities; ++i) {
        const auto& queue = simulation_.queue(p, i);
        const auto& group = simulation_.group(p, i);
        const double weight = 1e9 * (group.dropped + queue.dropped) +
                              1e5 * (group.xoff_sent + simulation_.pfc(p, i).received_xoff) + queue.marked +
                              queue.bytes_most / 1e3;
        if (weight > 0) rows.push_back({p, i, weight});
      }
    if (rows.empty()) return;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.weight > b.weight; });
    const std::size_t all = rows.size();
    if (rows.size() > 40) rows.resize(40);
    add("<h2>Ports and queues that had to do something ({} of {}", rows.size(), all);
    if (!title_.ports_file.empty()) add("; all are in {}", escaped(title_.ports_file));
    out_ += ")</h2>\n<div class=\"scroll\"><table>\n";
    out_ +=
        "<tr><th>port</th><th>prio</th><th>packets</th><th>longest queue</th><th>marked</th><th>drops in</th>"
        "<th>drops out</th><th>XOFF sent</th><th>XOFF received</th><th>paused</th><th>headroom "
        "used</th></tr>\n";
    for (const auto& row : rows) {
      const auto& queue = simulation_.queue(row.port, row.priority);
      const auto& group = simulation_.group(row.port, row.priority);
      const double cell = simulation_.pool(fabric_.ports[row.port].node).cell_bytes;
      add("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</"
          "td><td>{}</td>"
          "<td>{}</td><td>{}</td></tr>\n",
          escaped(port_name(fabric_, row.port)), row.priority, queue.sent_packets,
          short_number(queue.bytes_most), queue.marked, group.dropped, queue.dropped, group.xoff_sent,
          simulation_.pfc(row.port, row.priority).received_xoff,
          time(to_us(simulation_.paused_time(row.port, row.priority))),
          short_number(group.headroom_most * cell));
    }
    out_ += "</table></div>\n";
  }

  const Simulation& simulation_;
  const Fabric& fabric_;
  const Summary& summary_;
  const RunTitle& title_;
  std::string out_;
};

}  // namespace

std::string html_report(const Simulation& simulation, const Summary& summary, const RunTitle& title) {
  return Report(simulation, summary, title).text();
}

}  // namespace weir::fabric::sim
