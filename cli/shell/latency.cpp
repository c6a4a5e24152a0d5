#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "cli/client/standard_output.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {

namespace {

using Clock = std::chrono::steady_clock;

struct Figures {
  double least_ms = 1e9, most_ms = 0, total_ms = 0;
  std::uint64_t samples = 0;

  void add(double ms) {
    least_ms = std::min(least_ms, ms);
    most_ms = std::max(most_ms, ms);
    total_ms += ms;
    ++samples;
  }
  double average_ms() const { return total_ms / static_cast<double>(samples); }
};

// Formatted output rewrites one line of a terminal.
std::string text_of(const Figures& seen, Output output) {
  const double average_ms = seen.average_ms();
  switch (output) {
    case Output::csv:
      return fmt::format("{:.3f},{:.3f},{:.3f},{}\n", seen.least_ms, seen.most_ms, average_ms, seen.samples);
    case Output::json:
    case Output::quoted_json:
      return fmt::format("{{\"min\": {:.3f}, \"max\": {:.3f}, \"avg\": {:.3f}, \"count\": {}}}\n",
                         seen.least_ms, seen.most_ms, average_ms, seen.samples);
    case Output::formatted:
      return fmt::format("\x1b[0G\x1b[2Kmin: {:.3f}, max: {:.3f}, avg: {:.3f} ms ({} samples)", seen.least_ms,
                         seen.most_ms, average_ms, seen.samples);
    case Output::raw:
      break;
  }
  return fmt::format("{:.3f} {:.3f} {:.3f} {}\n", seen.least_ms, seen.most_ms, average_ms, seen.samples);
}

}  // namespace

int measure_latency(client::Session& session, const Options& options, Output output) {
  const bool history = options.mode == Mode::latency_history;
  const bool on_terminal = output == Output::formatted;
  const double default_s = history ? 15 : 1;
  const std::chrono::duration<double> interval(options.interval_s > 0 ? options.interval_s : default_s);
  const std::vector<std::string> ping{"PING"};
  Figures seen;
  auto began = Clock::now();
  for (;;) {
    const auto before = Clock::now();
    const auto reply = session.ask(ping);
    if (!reply) return failed(reply.error());
    seen.add(std::chrono::duration<double, std::milli>(Clock::now() - before).count());
    if (on_terminal) fmt::print("{}", text_of(seen, output));
    if (const std::chrono::duration<double> range = Clock::now() - began; range > interval) {
      if (!on_terminal) fmt::print("{}", text_of(seen, output));
      if (!history && !on_terminal) return 0;
      if (history) {
        if (on_terminal) fmt::print(" -- {:.2f} seconds range\n", range.count());
        began = Clock::now();
        seen = {};
      }
    }
    client::flush_output();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace weir::shell
