#include "fabric/sim/over_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fabric/picture/heat.hpp"
#include "fabric/picture/page.hpp"
#include "fabric/picture/plot.hpp"

namespace weir::fabric::sim {
namespace {

constexpr std::size_t most_lines = 6, most_rows = 24;

class OverTime {
 public:
  explicit OverTime(const Simulation& simulation)
      : simulation_(simulation),
        fabric_(simulation.fabric()),
        series_(simulation.series()),
        end_(end_of_interest(simulation)),
        begin_(begin_of_interest(simulation, end_)),
        unit_(to_us(end_) > 3000 ? "ms" : "us"),
        us_(to_us(end_) > 3000 ? 1000 : 1) {
    stands_still_ =
        end_ > series_.totals.back().time && simulation.totals().finished < simulation.results().size();
  }

  std::string text() {
    goodput();
    counts();
    buffers();
    queues();
    return std::move(out_);
  }

 private:
  double at(Ticks time) const { return to_us(time) / us_; }
  void figure(const std::string& picture) { out_ += "<figure>" + picture + "</figure>\n"; }

  Plot plot(std::string title, std::string y) const {
    return {.title = std::move(title),
            .x_label = unit_,
            .y_label = std::move(y),
            .x_from = at(begin_),
            .x_to = at(end_)};
  }

  // If nothing moves until the end there are no samples, so continue the line level.
  void to_the_end(Line& line) const {
    if (stands_still_ && !line.points.empty()) line.points.emplace_back(at(end_), line.points.back().second);
  }

  void goodput() {
    const auto& rows = series_.totals;
    Plot goodput =
        plot(simulation_.totals().live_packets == 0 ? "Goodput of all hosts"
                                                    : "What arrives at all hosts, headers included",
             "Gb/s");
    goodput.filled = true;
    Line line{"goodput", {{0.0, 0.0}}};
    for (std::size_t i = 1; i < rows.size(); ++i)
      line.points.emplace_back(
          at(rows[i].time), static_cast<double>(rows[i].delivered_bytes - rows[i - 1].delivered_bytes) * 8 /
                                (to_us(rows[i].time - rows[i - 1].time) * 1000));
    if (stands_still_) {
      line.points.emplace_back(at(rows.back().time + series_.interval), 0);
      line.points.emplace_back(at(end_), 0);
    }
    goodput.lines.push_back(std::move(line));
    figure(svg(goodput));
  }

  void counts() {
    const bool flows = !simulation_.results().empty();
    if (!flows && std::ranges::all_of(series_.totals, [](auto& row) { return row.queues_paused == 0; }))
      return;
    Plot counts =
        plot(flows ? "Flows under way, and queues stopped by PFC" : "Queues stopped by PFC", "number");
    Line alive{"flows", {}, true}, paused{"stopped queues", {}, true};
    for (const auto& row : series_.totals) {
      alive.points.emplace_back(at(row.time), row.flows_alive);
      paused.points.emplace_back(at(row.time), row.queues_paused);
    }
    to_the_end(alive);
    to_the_end(paused);
    if (flows) counts.lines.push_back(std::move(alive));
    counts.lines.push_back(std::move(paused));
    figure(svg(counts));
  }

  // The `most` keys with the highest values in a sparse series, highest first.
  template <class Row, class Key, class Value>
  static std::vector<std::uint64_t> highest(const std::vector<Row>& rows, std::size_t most, Key key,
                                            Value value) {
    std::map<std::uint64_t, double> peak;
    for (const auto& row : rows) {
      double& so_far = peak[key(row)];
      so_far = std::max(so_far, value(row));
    }
    std::vector<std::pair<double, std::uint64_t>> order;
    for (const auto& [k, v] : peak)
      if (v > 0) order.emplace_back(-v, k);
    std::sort(order.begin(), order.end());
    if (order.size() > most) order.resize(most);
    std::vector<std::uint64_t> keys;
    for (const auto& [negative, k] : order) keys.push_back(k);
    return keys;
  }

  // For one key, its value at each moment of the series; 0 where it has no row.
  template <class Row, class Key, class Value>
  std::vector<double> column(const std::vector<Row>& rows, std::uint64_t wanted, Key key, Value value) const {
    std::vector<double> out(series_.totals.size(), 0);
    std::size_t moment = 0;
    for (const auto& row : rows) {
      if (key(row) != wanted) continue;
      while (moment < out.size() && series_.totals[moment].time < row.time) ++moment;
      if (moment < out.size() && series_.totals[moment].time == row.time) out[moment] = value(row);
    }
    return out;
  }

  Line line_of(std::string name, const std::vector<double>& values) const {
    Line line{std::move(name), {}};
    for (std::size_t i = 0; i < values.size(); ++i)
      line.points.emplace_back(at(series_.totals[i].time), values[i]);
    to_the_end(line);
    return line;
  }

  template <class Value>
  void switch_plot(const char* title, Value value) {
    const auto key = [](const SwitchSample& row) { return std::uint64_t{row.node}; };
    Plot picture = plot(title, "bytes");
    for (const auto node : highest(series_.switches, most_lines, key, value))
      picture.lines.push_back(line_of(fabric_.nodes[node].name, column(series_.switches, node, key, value)));
    if (!picture.lines.empty()) figure(svg(picture));
  }

  void buffers() {
    switch_plot("Shared buffer in use, fullest switches",
                [](const SwitchSample& row) { return static_cast<double>(row.shared_bytes); });
    switch_plot("Headroom in use",
                [](const SwitchSample& row) { return static_cast<double>(row.headroom_bytes); });
  }

  std::string queue_name(std::uint64_t key) const {
    return fmt::format("{} q{}", port_name(fabric_, static_cast<std::uint32_t>(key / priorities)),
                       key % priorities);
  }

  void queues() {
    const auto key = [](const QueueSample& row) {
      return std::uint64_t{row.port} * priorities + row.priority;
    };
    const auto bytes = [](const QueueSample& row) { return static_cast<double>(row.egress_bytes); };
    const auto held = [](const QueueSample& row) { return row.paused ? 1.0 : 0.0; };
    const auto keys = highest(series_.queues, most_rows, key, bytes);
    if (keys.empty()) return;
    Plot longest = plot("Egress queues, longest", "bytes");
    for (std::size_t i = 0; i < std::min(keys.size(), most_lines); ++i)
      longest.lines.push_back(line_of(queue_name(keys[i]), column(series_.queues, keys[i], key, bytes)));
    const auto& first =
        simulation_.queue(static_cast<std::uint32_t>(keys[0] / priorities), keys[0] % priorities);
    if (first.kmax_bytes != 0)
      longest.limits = {
          {fmt::format("Kmin {}", grouped(first.kmin_bytes)), static_cast<double>(first.kmin_bytes)},
          {fmt::format("Kmax {}: every packet marked", grouped(first.kmax_bytes)),
           static_cast<double>(first.kmax_bytes)}};
    bands(longest);
    figure(svg(longest));

    HeatMap map{.title = "Where packets waited",
                .x_label = unit_,
                .value_name = "bytes in the queue, to",
                .held_name = "stopped by PFC",
                .x_from = at(begin_),
                .x_to = at(end_)};
    for (const auto& row : series_.totals) map.moments.push_back(at(row.time));
    for (const auto k : keys) {
      HeatRow row{queue_name(k), column(series_.queues, k, key, bytes), {}};
      for (const double value : column(series_.queues, k, key, held)) row.held.push_back(value != 0);
      map.rows.push_back(std::move(row));
    }
    figure(svg(map));
  }

  // Shades the times at which a switch's queue stood still.
  void bands(Plot& plot) const {
    const auto& totals = series_.totals;
    std::size_t moment = 0;
    Ticks last = no_time;
    for (const auto& row : series_.queues) {
      if (!row.paused || row.time == last) continue;
      last = row.time;
      while (moment < totals.size() && totals[moment].time < row.time) ++moment;
      const double from = at(row.time);
      const double to = moment + 1 < totals.size() ? at(totals[moment + 1].time) : at(end_);
      if (!plot.bands.empty() && plot.bands.back().to == from)
        plot.bands.back().to = to;
      else
        plot.bands.push_back({from, to});
    }
    if (!plot.bands.empty()) plot.band_name = "a switch is paused";
  }

  const Simulation& simulation_;
  const Fabric& fabric_;
  const Series& series_;
  Ticks end_, begin_;
  std::string unit_;
  double us_;  // microseconds per unit
  bool stands_still_ = false;
  std::string out_;
};

}  // namespace

Ticks end_of_interest(const Simulation& simulation) {
  Ticks last = 0;
  const auto& rows = simulation.series().totals;
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].delivered_bytes != rows[i - 1].delivered_bytes ||
        rows[i].flows_alive != rows[i - 1].flows_alive || rows[i].queues_paused != rows[i - 1].queues_paused)
      last = rows[i].time;
  for (const auto& result : simulation.results())
    if (result.arrived != no_time) last = std::max(last, result.arrived);
  for (const auto& incident : simulation.incidents()) last = std::max(last, incident.time);
  return std::min(simulation.now(), last + last / 10 + simulation.series().interval);
}

Ticks begin_of_interest(const Simulation& simulation, Ticks end) {
  constexpr std::uint64_t little = 100;  // a part of all bytes
  const Series& series = simulation.series();
  if (series.totals.empty()) return 0;
  const std::uint64_t all = series.totals.back().delivered_bytes;
  const auto first = std::ranges::find_if(series.totals, [&](const TotalSample& row) {
    return row.delivered_bytes > all / little || row.flows_alive != 0 || row.queues_paused != 0;
  });
  if (first == series.totals.end() || first->time < end / 2) return 0;
  return first->time - std::min(first->time, series.interval);
}

std::string over_time(const Simulation& simulation) {
  if (simulation.series().totals.size() < 3) return {};
  const Ticks begin = begin_of_interest(simulation, end_of_interest(simulation));
  const std::string from = begin == 0 ? "" : fmt::format(", from {:.3f} ms on", to_us(begin) / 1000);
  return "<h2>The fabric over time" + from + "</h2>\n" + OverTime(simulation).text();
}

}  // namespace weir::fabric::sim
