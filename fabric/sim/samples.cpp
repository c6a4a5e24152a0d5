#include "fabric/sim/samples.hpp"

#include <algorithm>
#include <bit>
#include <utility>

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
bool Samples::sample_again(std::uint32_t flows_alive, std::uint32_t held) {
  if (!series_.totals.empty() && net_.totals.hops == sampled_hops_ &&
      series_.totals.back().flows_alive == flows_alive && series_.totals.back().queues_paused == held) {
    unchanged_until_ = net_.now;
    return false;
  }
  if (unchanged_until_ != 0) repeat_last(std::exchange(unchanged_until_, 0));
  sampled_hops_ = net_.totals.hops;
  return true;
}

void Samples::repeat_last(Ticks time) {
  const Ticks last = series_.totals.back().time;
  repeat(series_.queues, last, time);
  repeat(series_.switches, last, time);
  repeat(series_.totals, last, time);
}

Samples::Samples(NetworkState& net) : net_(net) {
  series_.interval = net.run.sample_interval;
  used_priorities_ = static_cast<std::uint8_t>(1u << net.transport.control_priority);
  for (const auto& flow : net.run.flows) used_priorities_ |= static_cast<std::uint8_t>(1u << flow.priority);
  for (const auto& storm : net.run.storms)
    used_priorities_ |= static_cast<std::uint8_t>(1u << storm.priority);
}

void Samples::order_next() {
  net_.rare.push((net_.now / series_.interval + 1) * series_.interval, RareKind::sample);
}

void Samples::keep(std::uint32_t flows_alive) {
  std::uint32_t held = 0;
  for (const Port& port : net_.ports) held += static_cast<std::uint32_t>(std::popcount(port.paused));
  if (!sample_again(flows_alive, held)) return;
  for (std::uint32_t p = 0; p < net_.ports.size(); ++p) {
    const Port& port = net_.ports[p];
    if (port.nic != none) continue;
    const SharedPool& pool = net_.pools[port.node];
    const bool buffers = pool.used != 0 || pool.headroom_used != 0;
    // Egress queues that hold packets or are stopped; if the switch buffers anything, ingress groups, too.
    for (unsigned look = used_priorities_ & (buffers ? 0xffu : port.waiting | port.paused); look != 0;
         look &= look - 1) {
      const auto priority = static_cast<unsigned>(std::countr_zero(look));
      const Queue& queue = net_.queues[NetworkState::at(p, priority)];
      const PriorityGroup& group = net_.groups[NetworkState::at(p, priority)];
      const bool paused = (port.paused >> priority) & 1;
      if (queue.bytes == 0 && group.used_shared == 0 && group.used_headroom == 0 && !paused) continue;
      const std::uint32_t cell = pool.cell_bytes;
      series_.queues.push_back(
          {net_.now, p, priority, queue.bytes, group.used_shared * cell, group.used_headroom * cell, paused});
    }
  }
  for (std::uint32_t n = 0; n < net_.pools.size(); ++n) {
    const SharedPool& pool = net_.pools[n];
    if (pool.used != 0 || pool.headroom_used != 0)
      series_.switches.push_back(
          {net_.now, n, pool.used * pool.cell_bytes, pool.headroom_used * pool.cell_bytes});
  }
  series_.totals.push_back(
      {net_.now, net_.totals.delivered_bytes + net_.totals.live_bytes, flows_alive, held});
  while (series_.totals.size() > net_.run.most_samples ||
         series_.queues.size() + series_.switches.size() > most_queue_rows) {
    series_.interval *= 2;
    thin(series_.totals, series_.interval);
    thin(series_.switches, series_.interval);
    thin(series_.queues, series_.interval);
    if (series_.totals.size() < 16) break;  // in a large network a few samples fill the series
  }
}

}  // namespace weir::fabric::sim
