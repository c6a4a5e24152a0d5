// The series of a run: the contents of queues and buffers at every interval. When a series is full, every
// other sample is dropped and the interval doubles, so that a long run uses no more memory than a short one.
// Of a period without changes only the first and the last sample are kept.
#include <algorithm>
#include <bit>
#include <utility>

#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {
namespace {

constexpr std::size_t most_queue_rows = 200'000;

template <class Row>
void thin(std::vector<Row>& rows, Ticks interval) {
  std::erase_if(rows, [&](const Row& row) { return row.time % interval != 0; });
}

template <class Row>
void repeat(std::vector<Row>& rows, Ticks from, Ticks to) {
  std::size_t first = rows.size();
  while (first > 0 && rows[first - 1].time == from) --first;
  for (std::size_t i = first, end = rows.size(); i < end; ++i) {
    rows.push_back(rows[i]);
    rows.back().time = to;
  }
}

}  // namespace

// Whether anything differs from the last kept sample.
bool Simulation::sample_again(std::uint32_t held) {
  if (!series_.totals.empty() && totals_.hops == sampled_hops_ &&
      series_.totals.back().flows_alive == alive_ && series_.totals.back().queues_paused == held) {
    unchanged_until_ = now_;
    return false;
  }
  if (unchanged_until_ != 0) repeat_last_sample(std::exchange(unchanged_until_, 0));
  sampled_hops_ = totals_.hops;
  return true;
}

void Simulation::repeat_last_sample(Ticks time) {
  const Ticks last = series_.totals.back().time;
  repeat(series_.queues, last, time);
  repeat(series_.switches, last, time);
  repeat(series_.totals, last, time);
}

void Simulation::take_sample() {
  keep_sample();
  rare_.push((now_ / series_.interval + 1) * series_.interval, RareKind::sample);
}

void Simulation::keep_sample() {
  std::uint32_t held = 0;
  for (const Port& port : ports_) held += static_cast<std::uint32_t>(std::popcount(port.paused));
  if (!sample_again(held)) return;
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    const Port& port = ports_[p];
    if (port.nic != none) continue;
    const SharedPool& pool = pools_[port.node];
    const bool buffers = pool.used != 0 || pool.headroom_used != 0;
    // Egress queues that hold packets or are stopped; if the switch buffers anything, ingress groups, too.
    for (unsigned look = used_priorities_ & (buffers ? 0xffu : port.waiting | port.paused); look != 0;
         look &= look - 1) {
      const auto priority = static_cast<unsigned>(std::countr_zero(look));
      const Queue& queue = queues_[at(p, priority)];
      const PriorityGroup& group = groups_[at(p, priority)];
      const bool paused = (port.paused >> priority) & 1;
      if (queue.bytes == 0 && group.used_shared == 0 && group.used_headroom == 0 && !paused) continue;
      const std::uint32_t cell = pool.cell_bytes;
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
  while (series_.totals.size() > run_.most_samples ||
         series_.queues.size() + series_.switches.size() > most_queue_rows) {
    series_.interval *= 2;
    thin(series_.totals, series_.interval);
    thin(series_.switches, series_.interval);
    thin(series_.queues, series_.interval);
    if (series_.totals.size() < 16) break;  // in a large network a few samples fill the series
  }
}

}  // namespace weir::fabric::sim
