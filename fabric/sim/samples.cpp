// The series of a run: every interval, what is in queues and buffers. When a series is full, every other
// sample goes and the interval doubles, so that a long run costs no more memory than a short one.
#include <algorithm>

#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {
namespace {

constexpr std::size_t most_samples = 2000;  // in time
constexpr std::size_t most_queue_rows = 200'000;

template <class Row>
void thin(std::vector<Row>& rows, Ticks interval) {
  std::erase_if(rows, [&](const Row& row) { return row.time % interval != 0; });
}

}  // namespace

void Simulation::take_sample() {
  std::uint32_t held = 0;
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    const Port& port = ports_[p];
    held += std::popcount(port.paused);
    if (port.host != none) continue;
    for (unsigned priority = 0; priority < priorities; ++priority) {
      const Queue& queue = queues_[at(p, priority)];
      const PriorityGroup& group = groups_[at(p, priority)];
      const bool paused = (port.paused >> priority) & 1;
      if (queue.bytes == 0 && group.used_shared == 0 && group.used_headroom == 0 && !paused) continue;
      const std::uint32_t cell = pools_[port.node].cell_bytes;
      series_.queues.push_back(
          {now_, p, priority, queue.bytes, group.used_shared * cell, group.used_headroom * cell, paused});
    }
  }
  for (std::uint32_t n = 0; n < pools_.size(); ++n) {
    const SharedPool& pool = pools_[n];
    if (pool.used != 0 || pool.headroom_used != 0)
      series_.switches.push_back(
          {now_, n, pool.used * pool.cell_bytes, pool.headroom_used * pool.cell_bytes});
  }
  series_.totals.push_back({now_, totals_.delivered_bytes, static_cast<std::uint32_t>(alive_), held});
  while (series_.totals.size() > most_samples ||
         series_.queues.size() + series_.switches.size() > most_queue_rows) {
    series_.interval *= 2;
    thin(series_.totals, series_.interval);
    thin(series_.switches, series_.interval);
    thin(series_.queues, series_.interval);
    if (series_.totals.size() < 16) break;  // a network so large that a few samples fill it
  }
  const Ticks interval = series_.interval;
  rare_.push((now_ / interval + 1) * interval, RareKind::sample);
}

}  // namespace weir::fabric::sim
