// The report of a run for people: one HTML page that needs nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "fabric/sim/plot.hpp"
#include "fabric/sim/summary.hpp"

namespace weir::fabric::sim {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1.2em; }
h1 { margin: 0; } h2 { margin: 2em 0 .4em; font-size: 1.15em; } .sub { color: #7f858d; margin: .2em 0 1.4em; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 1em 0; }
.tile { border: 1px solid #8884; border-radius: 8px; padding: .5em .8em; } .tile b { display: block; font-size: 1.35em; }
.tile span { color: #7f858d; font-size: .86em; } .tile.bad { border-color: #d62828; } .tile.bad b { color: #d62828; }
ul.incidents { list-style: none; padding: 0; } ul.incidents li { border-left: 5px solid #d62828; padding: .2em .8em; margin: .4em 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9em; } td, th { padding: .15em .7em; text-align: right; }
th { border-bottom: 1px solid #8888; font-weight: 600; } td:first-child, th:first-child { text-align: left; }
.partial { background: #e09f1f33; border-left: 5px solid #e09f1f; padding: .4em .8em; }
)";

class Report {
 public:
  Report(const Simulation& simulation, const Summary& summary, const RunTitle& title)
      : simulation_(simulation),
        fabric_(simulation.fabric()),
        summary_(summary),
        title_(title),
        end_(to_us(simulation.now())) {}

  std::string text() {
    add("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\"><title>{} - weir sim</title>\n<style>{}{}</style></head><body>\n",
        html_escaped(title_.name), style, plot_style);
    head();
    tiles();
    incidents();
    slowdown();
    throughput();
    buffers();
    queues();
    ports();
    out_ += "</body></html>\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void head() {
    add("<h1>{}</h1>\n<p class=\"sub\">{} hosts, {} switches; {}; seed {}", html_escaped(title_.name),
        fabric_.hosts.size(), fabric_.nodes.size() - fabric_.hosts.size(),
        html_escaped(fmt::format("{}", fmt::join(title_.workloads, ", "))), simulation_.experiment().seed);
    for (const auto& [key, value] : title_.settings) add("; {} = {}", html_escaped(key), html_escaped(value));
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
    tile(fmt::format("{} / {}", summary_.finished, summary_.flows), "flows finished",
         summary_.finished < summary_.flows);
    tile(time(summary_.completion_us.p50), "completion time, median");
    tile(time(summary_.completion_us.p99), "completion time, 99th percentile");
    tile(fmt::format("{:.2f}", summary_.slowdown.p99), "slowdown, 99th percentile");
    tile(fmt::format("{:.4g} Gb/s", summary_.goodput_gbps), "goodput, all hosts");
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

  void incidents() {
    if (simulation_.incidents().empty()) return;
    out_ += "<h2>What happened</h2>\n<ul class=\"incidents\">\n";
    std::size_t shown = 0;
    for (const auto& incident : simulation_.incidents()) {
      if (++shown > 30) break;
      add("<li>{}</li>\n", html_escaped(describe(incident, fabric_)));
    }
    if (simulation_.incidents().size() > 30)
      add("<li>and {} more</li>\n", simulation_.incidents().size() - 30);
    out_ += "</ul>\n";
  }

  void slowdown() {
    const auto bins = slowdown_by_size(simulation_);
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
      out_ += svg(plot);
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
    out_ += svg(plot);
  }

  void throughput() {
    const auto& rows = simulation_.series().totals;
    if (rows.size() < 3) return;
    out_ += "<h2>The fabric over time</h2>\n";
    Plot plot{.title = "Goodput of all hosts", .x_label = "us", .y_label = "Gb/s", .x_from = 0, .x_to = end_};
    Line line{"goodput", {}};
    for (std::size_t i = 1; i < rows.size(); ++i)
      line.points.emplace_back(to_us(rows[i].time),
                               static_cast<double>(rows[i].delivered_bytes - rows[i - 1].delivered_bytes) *
                                   8 / (to_us(rows[i].time - rows[i - 1].time) * 1000));
    plot.lines.push_back(std::move(line));
    out_ += svg(plot);
    Plot counts{.title = "Flows under way, and queues stopped by PFC",
                .x_label = "us",
                .y_label = "number",
                .x_from = 0,
                .x_to = end_};
    Line alive{"flows", {}}, paused{"stopped queues", {}};
    for (const auto& row : rows) {
      alive.points.emplace_back(to_us(row.time), row.flows_alive);
      paused.points.emplace_back(to_us(row.time), row.queues_paused);
    }
    counts.lines = {std::move(alive), std::move(paused)};
    out_ += svg(counts);
  }

  // Rows of a sparse series as lines of the `most` keys that reach highest; gaps between samples are zeros.
  template <class Row, class Key, class Value, class Name>
  std::vector<Line> highest(const std::vector<Row>& rows, std::size_t most, Key key, Value value, Name name) {
    std::map<std::uint64_t, double> peak;
    for (const auto& row : rows) peak[key(row)] = std::max(peak[key(row)], value(row));
    std::vector<std::pair<double, std::uint64_t>> order;
    for (const auto& [k, v] : peak)
      if (v > 0) order.emplace_back(-v, k);
    std::sort(order.begin(), order.end());
    if (order.size() > most) order.resize(most);
    std::vector<Line> lines;
    for (const auto& [negative, k] : order) {
      std::map<Ticks, double> at;
      for (const auto& row : rows)
        if (key(row) == k) at[row.time] = value(row);
      Line line{name(k), {}};
      for (const auto& total : simulation_.series().totals) {
        const auto found = at.find(total.time);
        line.points.emplace_back(to_us(total.time), found == at.end() ? 0 : found->second);
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }

  void buffers() {
    const auto key = [](const SwitchSample& row) { return std::uint64_t{row.node}; };
    const auto name = [&](std::uint64_t node) { return fabric_.nodes[node].name; };
    Plot shared{.title = "Shared buffer in use, fullest switches",
                .x_label = "us",
                .y_label = "bytes",
                .x_from = 0,
                .x_to = end_};
    shared.lines = highest(
        simulation_.series().switches, 6, key,
        [](const SwitchSample& row) { return static_cast<double>(row.shared_bytes); }, name);
    if (!shared.lines.empty()) out_ += svg(shared);
    Plot headroom{.title = "Headroom in use", .x_label = "us", .y_label = "bytes", .x_from = 0, .x_to = end_};
    headroom.lines = highest(
        simulation_.series().switches, 6, key,
        [](const SwitchSample& row) { return static_cast<double>(row.headroom_bytes); }, name);
    if (!headroom.lines.empty()) out_ += svg(headroom);
  }

  void queues() {
    const auto& rows = simulation_.series().queues;
    Plot plot{
        .title = "Egress queues, longest", .x_label = "us", .y_label = "bytes", .x_from = 0, .x_to = end_};
    const auto key = [](const QueueSample& row) {
      return std::uint64_t{row.port} * priorities + row.priority;
    };
    plot.lines = highest(
        rows, 6, key, [](const QueueSample& row) { return static_cast<double>(row.egress_bytes); },
        [&](std::uint64_t k) {
          return fmt::format("{} q{}", port_name(fabric_, static_cast<std::uint32_t>(k / priorities)),
                             k % priorities);
        });
    if (plot.lines.empty()) return;
    // Where the fullest switch's upstream queues stand still: the time is shaded.
    std::map<Ticks, bool> paused;
    for (const auto& row : rows)
      if (row.paused) paused[row.time] = true;
    const auto& totals = simulation_.series().totals;
    for (std::size_t i = 0; i + 1 < totals.size(); ++i)
      if (paused.contains(totals[i].time)) {
        const double from = to_us(totals[i].time), to = to_us(totals[i + 1].time);
        if (!plot.bands.empty() && plot.bands.back().to == from)
          plot.bands.back().to = to;
        else
          plot.bands.push_back({from, to});
      }
    if (!plot.bands.empty()) plot.band_name = "a switch is paused";
    out_ += svg(plot);
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
    add("<h2>Ports and queues that had to do something ({} of {}; all are in ports.csv)</h2>\n<div "
        "class=\"scroll\"><table>\n",
        rows.size(), all);
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
          html_escaped(port_name(fabric_, row.port)), row.priority, queue.sent_packets,
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
  double end_;
  std::string out_;
};

}  // namespace

std::string html_report(const Simulation& simulation, const Summary& summary, const RunTitle& title) {
  return Report(simulation, summary, title).text();
}

}  // namespace weir::fabric::sim
