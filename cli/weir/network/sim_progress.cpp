#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/weir/network/sim_command.hpp"
#include "fabric/picture/page.hpp"

namespace weir::command {
namespace {
namespace sim = fabric::sim;
}

SimProgress::SimProgress(bool quiet) : shown_(!quiet && ::isatty(STDERR_FILENO) == 1) {}

SimProgress::~SimProgress() {
  if (written_) std::fputs("\r\x1b[K", stderr);
}

void SimProgress::run(const sim::Simulation& simulation) {
  if (!shown_ || !due()) return;
  const auto elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
  const auto& totals = simulation.totals();
  const double of_flows = simulation.results().empty() ? 0
                                                       : static_cast<double>(totals.finished) /
                                                             static_cast<double>(simulation.results().size());
  const double of_time =
      static_cast<double>(simulation.now()) / static_cast<double>(simulation.experiment().duration);
  bar(std::max(of_flows, of_time),
      fmt::format("{:.3f} ms simulated, {}/{} flows, {} events/s", sim::to_us(simulation.now()) / 1000,
                  totals.finished, simulation.results().size(),
                  fabric::short_number(static_cast<double>(totals.events) / elapsed)));
}

void SimProgress::runs(std::size_t done, std::size_t all) {
  if (shown_ && due())
    bar(static_cast<double>(done) / static_cast<double>(all), fmt::format("{} of {} runs", done, all));
}

bool SimProgress::due() {
  const auto now = Clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return false;
  last_ = now;
  return true;
}

void SimProgress::bar(double part, const std::string& text) {
  const auto full = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * 24);
  fmt::print(stderr, "\r\x1b[K[{}{}] {}", std::string(full, '#'), std::string(24 - full, '.'), text);
  std::fflush(stderr);
  written_ = true;
}

}  // namespace weir::command
