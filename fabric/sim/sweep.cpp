#include "fabric/sim/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "fabric/picture/page.hpp"
#include "fabric/picture/plot.hpp"

namespace weir::fabric::sim {
namespace {

constexpr std::uint64_t events_between_looks = 1u << 16;

struct Column {
  const char* name;
  double (*value)(const Summary&);
  const char* title = nullptr;  // of its plot; null: no plot
  const char* unit = "";
};
const Column columns[] = {
    {"finished", [](const Summary& s) { return static_cast<double>(s.finished); }},
    {"flows", [](const Summary& s) { return static_cast<double>(s.flows); }},
    {"completion_us_p50", [](const Summary& s) { return s.completion_us.p50; },
     "Completion time of flows, median", "us"},
    {"completion_us_p99", [](const Summary& s) { return s.completion_us.p99; },
     "Completion time of flows, 99th percentile", "us"},
    {"slowdown_p50", [](const Summary& s) { return s.slowdown.p50; }},
    {"slowdown_p99", [](const Summary& s) { return s.slowdown.p99; }, "Slowdown of flows, 99th percentile",
     "times the ideal"},
    {"goodput_gbps", [](const Summary& s) { return s.goodput_gbps; }, "Goodput of all hosts", "Gb/s"},
    {"lossless_drops", [](const Summary& s) { return static_cast<double>(s.totals.lossless_drops); },
     "Packets lost in lossless classes", "packets"},
    {"pfc_frames", [](const Summary& s) { return static_cast<double>(s.totals.pfc_frames); }, "PFC frames",
     "frames"},
    {"paused_us", [](const Summary& s) { return s.paused_us; },
     "Time that queues were stopped by PFC, all together", "us"},
    {"ecn_marked", [](const Summary& s) { return static_cast<double>(s.totals.marked); },
     "Packets marked (ECN)", "packets"},
    {"buffer_bytes", [](const Summary& s) { return static_cast<double>(s.buffer_most_bytes); },
     "Shared buffer in use, most in a switch", "bytes"},
    {"deadlocks", [](const Summary& s) { return static_cast<double>(s.deadlocks); }},
};

}  // namespace

std::vector<SweepRow> sweep_rows(const std::vector<SweepAxis>& axes) {
  std::vector<SweepRow> rows(1);
  for (const auto& axis : axes) {
    std::vector<SweepRow> grown;
    for (const auto& row : rows)
      for (const auto& value : axis.values) {
        grown.push_back(row);
        grown.back().values.push_back(value);
      }
    rows = std::move(grown);
  }
  return rows;
}

Summary run_row(const Scenario& scenario, const Knobs& knobs, const std::vector<SweepAxis>& axes,
                const SweepRow& row, const std::atomic<bool>& stop) {
  Knobs turned = knobs;
  for (std::size_t i = 0; i < axes.size(); ++i) set_knob(turned, *axes[i].knob, row.values[i]);
  const Prepared prepared = prepare(scenario, turned);
  Experiment experiment = prepared.experiment;
  experiment.sample_interval = 0;  // a row needs no series
  Simulation simulation(prepared.fabric, experiment);
  bool more = true;
  // Relaxed: it only says that the rest is no longer needed; no data depends on it.
  while (more && !stop.load(std::memory_order_relaxed)) more = simulation.run_some(events_between_looks);
  return summarize(simulation, more);
}

std::vector<SweepRow> sweep(const Scenario& scenario, const Knobs& knobs, const std::vector<SweepAxis>& axes,
                            unsigned threads, const std::atomic<bool>& stop,
                            const std::function<void(std::size_t)>& on_done) {
  auto rows = sweep_rows(axes);
  std::atomic<std::size_t> next{0};  // relaxed: each index goes to one thread, and join() publishes the rows
  std::mutex reporting;
  std::size_t done = 0;
  const auto work = [&] {
    for (;;) {
      const std::size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= rows.size() || stop.load(std::memory_order_relaxed)) return;
      rows[index].summary = run_row(scenario, knobs, axes, rows[index], stop);
      rows[index].done = true;
      const std::lock_guard lock(reporting);
      if (on_done) on_done(++done);
    }
  };
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < std::min<std::size_t>(threads, rows.size()); ++i) others.emplace_back(work);
  work();
  others.clear();
  return rows;
}

std::string sweep_csv(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows) {
  std::string out;
  for (const auto& axis : axes) out += fmt::format("{}.{},", axis.knob->table, axis.knob->key);
  for (const auto& column : columns) out += fmt::format("{},", column.name);
  out += "partial\n";
  for (const auto& row : rows) {
    if (!row.done) continue;
    for (const auto& value : row.values) out += value + ",";
    for (const auto& column : columns) out += fmt::format("{:.10g},", column.value(row.summary));
    out += row.summary.partial ? "1\n" : "0\n";
  }
  return out;
}

std::string sweep_json(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    if (!row.done) continue;
    auto& object = json.emplace_back();
    for (std::size_t i = 0; i < axes.size(); ++i)
      object[fmt::format("{}.{}", axes[i].knob->table, axes[i].knob->key)] = row.values[i];
    for (const auto& column : columns) object[column.name] = column.value(row.summary);
    object["partial"] = row.summary.partial;
  }
  return json.dump(2) + "\n";
}

std::string sweep_table(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows) {
  std::string out;
  for (const auto& axis : axes) out += fmt::format("{:>12} ", axis.knob->key);
  out += "   finished   p50 us   p99 us  slow p99     Gb/s   drops     PFC    marked  deadlock\n";
  for (const auto& row : rows) {
    if (!row.done) continue;
    const Summary& s = row.summary;
    for (const auto& value : row.values) out += fmt::format("{:>12} ", value);
    out += fmt::format("{:>11} {:>8} {:>8} {:>9.2f} {:>8} {:>7} {:>7} {:>9} {:>9}\n",
                       fmt::format("{}/{}", s.finished, s.flows), short_number(s.completion_us.p50),
                       short_number(s.completion_us.p99), s.slowdown.p99, short_number(s.goodput_gbps),
                       s.totals.lossless_drops, short_number(static_cast<double>(s.totals.pfc_frames)),
                       short_number(static_cast<double>(s.totals.marked)), s.deadlocks != 0 ? "yes" : "no");
  }
  return out;
}

// One plot per column. Along x are the values of the first axis as given; they need not be numbers
// ("50KB", "none") and are as often powers as evenly spaced. There is one line for each
// combination of the other axes.
std::string sweep_html(const Scenario& scenario, const std::vector<SweepAxis>& axes,
                       const std::vector<SweepRow>& rows) {
  std::string out = page_begin(scenario.name + ": weir sim");
  out += fmt::format("<h1>{}</h1>\n<p class=\"sub\">{} runs; along x: {}</p>\n", escaped(scenario.name),
                     rows.size(), axes.front().knob->what);
  for (const auto& column : columns) {
    if (column.title == nullptr) continue;
    const auto& values = axes.front().values;
    Plot plot{.title = column.title,
              .x_label = std::string(axes.front().knob->key),
              .y_label = column.unit,
              .dots = true,
              .x_names = values,
              .x_to = static_cast<double>(values.size() - 1)};
    std::map<std::string, Line> lines;
    double largest = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].done) continue;
      std::string name;
      for (std::size_t a = 1; a < axes.size(); ++a)
        name += fmt::format("{}{} {}", name.empty() ? "" : ", ", axes[a].knob->key, rows[i].values[a]);
      const auto place = static_cast<double>(std::ranges::find(values, rows[i].values[0]) - values.begin());
      auto& line = lines[name];
      line.name = name.empty() ? column.title : name;
      line.points.emplace_back(place, column.value(rows[i].summary));
      largest = std::max(largest, column.value(rows[i].summary));
    }
    if (largest == 0) continue;
    for (auto& [name, line] : lines) {
      std::sort(line.points.begin(), line.points.end());
      plot.lines.push_back(std::move(line));
    }
    out += "<figure>" + svg(plot) + "</figure>\n";
  }
  return out + "<div class=\"scroll\"><pre>" + escaped(sweep_table(axes, rows)) + "</pre></div>\n" +
         page_end();
}

}  // namespace weir::fabric::sim
