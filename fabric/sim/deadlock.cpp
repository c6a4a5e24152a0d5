#include "fabric/sim/deadlock.hpp"

#include <algorithm>
#include <utility>

namespace weir::fabric::sim {
namespace {

using Edges = std::vector<std::vector<std::uint32_t>>;  // for each place, the places that its edges lead to

// The places of one cycle in order; empty: there is none. Depth first: a place met again on the
// current path closes a cycle.
std::vector<std::uint32_t> find_cycle(const Edges& next) {
  std::vector<std::uint8_t> state(next.size(), 0);  // 0 new, 1 on the path, 2 done
  std::vector<std::uint32_t> path;
  std::vector<std::size_t> edge;
  const auto step_to = [&](std::uint32_t there) {
    state[there] = 1;
    path.push_back(there);
    edge.push_back(0);
  };
  for (std::uint32_t root = 0; root < next.size(); ++root) {
    if (state[root] == 0) step_to(root);
    while (!path.empty()) {
      const std::uint32_t here = path.back();
      if (edge.back() == next[here].size()) {
        state[here] = 2;
        path.pop_back();
        edge.pop_back();
        continue;
      }
      const std::uint32_t there = next[here][edge.back()++];
      if (state[there] == 1) return {std::find(path.begin(), path.end(), there), path.end()};
      if (state[there] == 0) step_to(there);
    }
  }
  return {};
}

}  // namespace

void DeadlockCheck::look() {
  net_.rare.push(net_.now + net_.run.deadlock_check, RareKind::deadlock_check);
  if (found_) return;  // one is enough: the first is the cause
  const std::vector<std::uint32_t> stuck = stuck_queues();
  if (stuck.size() < 2) return;
  const std::vector<std::uint32_t> cycle = find_cycle(stopped_by(stuck));
  if (cycle.empty()) return;
  Incident incident{
      net_.now, Incident::Kind::deadlock, {}, static_cast<std::uint8_t>(stuck[cycle.front()] % priorities)};
  for (const std::uint32_t place : cycle) incident.ports.push_back(stuck[place] / priorities);
  net_.incidents.push_back(std::move(incident));
  found_ = true;
}

// Queues (port * priorities + priority, ascending) that PFC stops and that sent nothing since the last call.
std::vector<std::uint32_t> DeadlockCheck::stuck_queues() {
  sent_.resize(net_.queues.size());
  std::vector<std::uint32_t> stuck;
  for (std::uint32_t p = 0; p < net_.ports.size(); ++p) {
    const unsigned held = net_.ports[p].paused & net_.ports[p].waiting;
    for (unsigned priority = 0; priority < priorities; ++priority) {
      auto& sent = sent_[NetworkState::at(p, priority)];
      const bool idle = net_.queues[NetworkState::at(p, priority)].sent_packets == sent;
      sent = net_.queues[NetworkState::at(p, priority)].sent_packets;
      if (idle && net_.ports[p].nic == none && ((held >> priority) & 1))
        stuck.push_back(p * priorities + priority);
    }
  }
  return stuck;
}

// Edges, by places in `stuck`: from a queue to those queues, in the switch that stopped it, that
// hold packets from its link.
std::vector<std::vector<std::uint32_t>> DeadlockCheck::stopped_by(
    std::span<const std::uint32_t> stuck) const {
  Edges next(stuck.size());
  const auto place = [&](std::uint32_t name) {
    const auto found = std::lower_bound(stuck.begin(), stuck.end(), name);
    return found != stuck.end() && *found == name ? static_cast<std::uint32_t>(found - stuck.begin()) : none;
  };
  for (std::uint32_t to = 0; to < stuck.size(); ++to) {
    const std::uint32_t out = stuck[to] / priorities;
    const unsigned priority = stuck[to] % priorities;
    std::vector<std::uint32_t> from;
    for (std::uint32_t i = net_.queues[stuck[to]].head; i != none; i = net_.packets.next(i))
      from.push_back(net_.packets[i].ingress);
    std::sort(from.begin(), from.end());
    from.erase(std::unique(from.begin(), from.end()), from.end());
    for (const std::uint32_t ingress : from) {
      if (!net_.groups[NetworkState::at(ingress, priority)].paused ||
          net_.ports[ingress].node != net_.ports[out].node)
        continue;
      const std::uint32_t holder = place(net_.ports[ingress].peer * priorities + priority);
      if (holder != none) next[holder].push_back(to);
    }
  }
  return next;
}

}  // namespace weir::fabric::sim
