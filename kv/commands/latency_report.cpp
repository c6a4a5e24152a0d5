#include "kv/commands/latency_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace weir::kv {

namespace {

using Samples = std::deque<LatencyEvents::Sample>;

std::string ago(std::int64_t seconds) {
  constexpr std::int64_t hour = 3600;
  if (seconds < 60) return std::to_string(seconds) + 's';
  if (seconds < hour) return std::to_string(seconds / 60) + 'm';
  if (seconds < 24 * hour) return std::to_string(seconds / hour) + 'h';
  return std::to_string(seconds / (24 * hour)) + 'd';
}

// Within a row a column that ends there has one of three heights, and a higher column the full height.
void add_rows(std::string& text, const std::vector<std::int64_t>& values, std::int64_t low,
              std::int64_t high) {
  constexpr int rows = 4;
  constexpr std::string_view heights = "_o#";
  constexpr auto per_row = static_cast<int>(heights.size());
  const double span = std::max<double>(1, static_cast<double>(high - low));
  for (int row = rows - 1; row >= 0; --row) {
    for (const std::int64_t value : values) {
      const int level =
          static_cast<int>(std::lround(static_cast<double>(value - low) / span * (rows * per_row - 1)));
      const int above = level - row * per_row;
      text += above < 0 ? ' ' : above >= per_row ? '|' : heights[static_cast<std::size_t>(above)];
    }
    text += '\n';
  }
}

void add_labels(std::string& text, const std::vector<std::string>& labels) {
  const std::size_t longest = std::ranges::max(labels, {}, &std::string::size).size();
  for (std::size_t i = 0; i < longest; ++i) {
    for (const std::string& label : labels) text += i < label.size() ? label[i] : ' ';
    text += '\n';
  }
}

struct Figures {
  double average = 0, deviation = 0, period_s = 0;
};
Figures figures_of(const Samples& samples, std::int64_t now_s) {
  Figures figures;
  const auto count = static_cast<double>(samples.size());
  for (const auto& sample : samples) figures.average += static_cast<double>(sample.ms) / count;
  for (const auto& sample : samples)
    figures.deviation += std::fabs(static_cast<double>(sample.ms) - figures.average) / count;
  figures.period_s = static_cast<double>(now_s - samples.front().time_s) / count;
  return figures;
}

std::string one_decimal(double value) {
  const auto tenths = static_cast<std::int64_t>(std::llround(value * 10));
  return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10);
}

struct Advice {
  std::string_view kind;
  std::string_view text;
};
constexpr std::array advices{
    Advice{"command",
           "- SLOWLOG GET shows which commands took long. Commands on whole large values (KEYS, SMEMBERS,\n"
           "  SORT, LRANGE 0 -1) can be asked for in parts (SCAN, SSCAN, ZRANGE with LIMIT).\n"},
    Advice{"expire-cycle",
           "- Many keys expired in the same moment. Spread their times, if they are set together.\n"},
    Advice{"fast-command",
           "- Commands that touch one element took long: the processor was busy elsewhere. Look for other\n"
           "  programs on this machine, for swapping, and what weir-cli --intrinsic-latency says.\n"},
};

}  // namespace

std::string latency_graph(std::string_view kind, const LatencyEvents::Event& event, std::int64_t now_s) {
  constexpr std::size_t columns = 80;
  std::vector<std::int64_t> values;
  std::vector<std::string> labels;
  for (std::size_t i = event.samples.size() - std::min(columns, event.samples.size());
       i < event.samples.size(); ++i) {
    values.push_back(event.samples[i].ms);
    labels.push_back(ago(std::max<std::int64_t>(now_s - event.samples[i].time_s, 0)));
  }
  const auto [low, high] = std::ranges::minmax(values);
  std::string text(kind);
  text += " - high " + std::to_string(high) + " ms, low " + std::to_string(low) + " ms (all time high " +
          std::to_string(event.worst_ms) + " ms)\n";
  text.append(columns, '-') += '\n';
  add_rows(text, values, low, high);
  text += '\n';
  add_labels(text, labels);
  return text;
}

std::string latency_report(const LatencyEvents& events, const Settings& settings, std::int64_t now_s) {
  if (events.all().empty() && settings.latency_monitor_threshold_ms == 0) {
    return "Latency is not monitored. CONFIG SET latency-monitor-threshold MILLISECONDS turns it on.\n";
  }
  if (events.all().empty()) {
    return "Nothing took as long as " + std::to_string(settings.latency_monitor_threshold_ms) +
           " ms since the events were last reset.\n";
  }
  std::string text = "The server was blocked for a while:\n\n";
  for (const auto& [kind, event] : events.all()) {
    const Figures figures = figures_of(event.samples, now_s);
    text.append("- ").append(kind) += ": " + std::to_string(event.samples.size()) + " times, " +
                                      one_decimal(figures.average) + " ms on average (mean deviation " +
                                      one_decimal(figures.deviation) + " ms), one in " +
                                      one_decimal(figures.period_s) + " s; the worst ever took " +
                                      std::to_string(event.worst_ms) + " ms.\n";
  }
  text += "\nWhat may help:\n\n";
  for (const Advice& advice : advices) {
    if (events.find(advice.kind) != nullptr) text += advice.text;
  }
  const bool logs_slow = settings.slowlog_log_slower_than_us >= 0 &&
                         settings.slowlog_log_slower_than_us / 1000 <= settings.latency_monitor_threshold_ms;
  if (!logs_slow) {
    text += "- The slow log does not hold all of these commands: CONFIG SET slowlog-log-slower-than " +
            std::to_string(settings.latency_monitor_threshold_ms) + "000.\n";
  }
  return text;
}

}  // namespace weir::kv
