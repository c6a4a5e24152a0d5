#include "fabric/sim/pfc.hpp"

#include <algorithm>

namespace weir::fabric::sim {

std::uint32_t Pfc::quanta_of(std::uint32_t port) const {
  const Node& node = net_.fabric.nodes[net_.ports[port].node];
  return node.host ? 65535 : net_.fabric.switches[node.settings].pause_quanta;
}

void Pfc::pause_peer(std::uint32_t port, unsigned priority) {
  net_.groups[NetworkState::at(port, priority)].paused = true;
  ++net_.groups[NetworkState::at(port, priority)].xoff_sent;
  send(port, priority, quanta_of(port));
  auto& counters = net_.pfc[NetworkState::at(port, priority)];
  if (counters.refresh_pending) return;
  counters.refresh_pending = true;
  refresh_later(port, priority);
}

// The pause is renewed after half its time, as long as the group is over its limit.
void Pfc::refresh_later(std::uint32_t port, unsigned priority) {
  const Ticks pause = Ticks{quanta_of(port)} * 64 * net_.ports[port].ticks_per_byte;
  net_.rare.push(net_.now + std::max<Ticks>(pause / 2, 1), RareKind::pfc_refresh, port, priority);
}

void Pfc::refresh(std::uint32_t port, unsigned priority) {
  PriorityGroup& group = net_.groups[NetworkState::at(port, priority)];
  if (!group.paused || !net_.ports[port].up) {
    net_.pfc[NetworkState::at(port, priority)].refresh_pending = false;
    return;
  }
  ++group.xoff_sent;
  send(port, priority, quanta_of(port));
  refresh_later(port, priority);
}

void Pfc::resume_peer(std::uint32_t port, unsigned priority) {
  net_.groups[NetworkState::at(port, priority)].paused = false;
  ++net_.groups[NetworkState::at(port, priority)].xon_sent;
  send(port, priority, 0);
}

// MAC control frames wait only for the frame that is being sent.
void Pfc::send(std::uint32_t port_index, unsigned priority, std::uint32_t quanta) {
  Port& port = net_.ports[port_index];
  if (!port.up) return;
  ++net_.totals.pfc_frames;
  const Ticks begin = std::max(net_.now, port.free_at);
  const Ticks frame = Ticks{net_.transport.pfc_bytes} * port.ticks_per_byte;
  port.free_at = begin + frame + Ticks{net_.transport.gap_bytes} * port.ticks_per_byte;
  const auto& link = net_.fabric.ports[port_index];
  net_.rare.push(begin + frame + link.delay + net_.fabric.ports[port.peer].pause_response,
                 RareKind::pfc_arrival, port.peer, priority | quanta << 8);
}

void Pfc::arrived(std::uint32_t port, unsigned priority, std::uint32_t quanta) {
  auto& counters = net_.pfc[NetworkState::at(port, priority)];
  if (!net_.ports[port].up) return;
  if (quanta == 0) {
    ++counters.received_xon;
    counters.until = net_.now;
    return go_on(port, priority);
  }
  ++counters.received_xoff;
  counters.until = net_.now + Ticks{quanta} * 64 * net_.ports[port].ticks_per_byte;
  stop(port, priority);
  if (!counters.expiry_pending) {
    counters.expiry_pending = true;
    net_.rare.push(counters.until, RareKind::pause_expiry, port, priority);
  }
}

void Pfc::expired(std::uint32_t port, unsigned priority) {
  auto& counters = net_.pfc[NetworkState::at(port, priority)];
  if (counters.until > net_.now)
    return net_.rare.push(counters.until, RareKind::pause_expiry, port, priority);
  counters.expiry_pending = false;
  go_on(port, priority);
}

void Pfc::stop(std::uint32_t port, unsigned priority) {
  Port& stopped = net_.ports[port];
  const auto bit = static_cast<std::uint8_t>(1u << priority);
  if ((stopped.paused & bit) || (stopped.deaf & bit)) return;
  stopped.paused |= bit;
  auto& counters = net_.pfc[NetworkState::at(port, priority)];
  counters.paused_since = net_.now;
  ++counters.stops;
}

void Pfc::go_on(std::uint32_t port, unsigned priority) {
  Port& stopped = net_.ports[port];
  const auto bit = static_cast<std::uint8_t>(1u << priority);
  if (!(stopped.paused & bit)) return;
  stopped.paused &= ~bit;
  auto& counters = net_.pfc[NetworkState::at(port, priority)];
  counters.paused += net_.now - counters.paused_since;
  host_.kick(port);
}

Ticks Pfc::paused_time(std::uint32_t port, unsigned priority) const {
  const auto& counters = net_.pfc[NetworkState::at(port, priority)];
  const bool now_paused = (net_.ports[port].paused >> priority) & 1;
  return counters.paused + (now_paused ? net_.now - counters.paused_since : 0);
}

}  // namespace weir::fabric::sim
