#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "cli/client/standard_output.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {

int measure_latency(client::Session& session, const Options& options, Output output) {
  using Clock = std::chrono::steady_clock;
  // At a terminal it continues; otherwise it prints one figure after a second (or -i).
  const bool for_ever = output == Output::formatted;
  const auto wanted = std::chrono::duration<double>(options.interval_s > 0 ? options.interval_s : 1);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(wanted);
  const std::vector<std::string> ping{"PING"};
  double least = 1e9, most = 0, total = 0;
  std::uint64_t samples = 0;
  do {
    const auto before = Clock::now();
    const auto reply = session.ask(ping);
    if (!reply) return failed(reply.error());
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - before).count();
    least = std::min(least, ms);
    most = std::max(most, ms);
    total += ms;
    ++samples;
    if (for_ever) {
      fmt::print("\x1b[0G\x1b[2Kmin: {:.3f}, max: {:.3f}, avg: {:.3f} ms ({} samples)", least, most,
                 total / static_cast<double>(samples), samples);
      client::flush_output();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } while (for_ever || Clock::now() < until);
  const auto average = total / static_cast<double>(samples);
  switch (output) {
    case Output::csv:
      fmt::print("{:.3f},{:.3f},{:.3f},{}\n", least, most, average, samples);
      break;
    case Output::json:
    case Output::quoted_json:
      fmt::print("{{\"min\": {:.3f}, \"max\": {:.3f}, \"avg\": {:.3f}, \"count\": {}}}\n", least, most,
                 average, samples);
      break;
    case Output::formatted:
    case Output::raw:
      fmt::print("{:.3f} {:.3f} {:.3f} {}\n", least, most, average, samples);
      break;
  }
  return 0;
}

}  // namespace weir::shell
