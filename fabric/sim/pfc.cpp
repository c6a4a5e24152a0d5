// Priority flow control, IEEE 802.1Qbb: a priority group over its threshold stops its peer, which continues
// when it is told to or when the pause expires. A quantum is 512 bit times of the link.
#include <algorithm>

#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {

std::uint32_t Simulation::quanta_of(std::uint32_t port) const {
  const Node& node = fabric_.nodes[ports_[port].node];
  return node.host ? 65535 : fabric_.switches[node.settings].pause_quanta;
}

void Simulation::pause_peer(std::uint32_t port, unsigned priority) {
  groups_[at(port, priority)].paused = true;
  ++groups_[at(port, priority)].xoff_sent;
  send_pfc(port, priority, quanta_of(port));
  auto& counters = pfc_[at(port, priority)];
  if (counters.refresh_pending) return;
  counters.refresh_pending = true;
  refresh_later(port, priority);
}

// The pause is renewed after half its time, as long as the group is over its limit.
void Simulation::refresh_later(std::uint32_t port, unsigned priority) {
  const Ticks pause = Ticks{quanta_of(port)} * 64 * ports_[port].ticks_per_byte;
  rare_.push(now_ + std::max<Ticks>(pause / 2, 1), RareKind::pfc_refresh, port, priority);
}

void Simulation::refresh_pause(std::uint32_t port, unsigned priority) {
  PriorityGroup& group = groups_[at(port, priority)];
  if (!group.paused || !ports_[port].up) {
    pfc_[at(port, priority)].refresh_pending = false;
    return;
  }
  ++group.xoff_sent;
  send_pfc(port, priority, quanta_of(port));
  refresh_later(port, priority);
}

void Simulation::resume_peer(std::uint32_t port, unsigned priority) {
  groups_[at(port, priority)].paused = false;
  ++groups_[at(port, priority)].xon_sent;
  send_pfc(port, priority, 0);
}

// MAC control frames wait only for the frame that is being sent.
void Simulation::send_pfc(std::uint32_t port_index, unsigned priority, std::uint32_t quanta) {
  Port& port = ports_[port_index];
  if (!port.up) return;
  ++totals_.pfc_frames;
  const Ticks begin = std::max(now_, port.free_at);
  const Ticks frame = Ticks{transport_.pfc_bytes} * port.ticks_per_byte;
  port.free_at = begin + frame + Ticks{transport_.gap_bytes} * port.ticks_per_byte;
  const auto& link = fabric_.ports[port_index];
  rare_.push(begin + frame + link.delay + fabric_.ports[port.peer].pause_response, RareKind::pfc_arrival,
             port.peer, priority | quanta << 8);
}

void Simulation::pfc_arrived(std::uint32_t port, unsigned priority, std::uint32_t quanta) {
  auto& counters = pfc_[at(port, priority)];
  if (!ports_[port].up) return;
  if (quanta == 0) {
    ++counters.received_xon;
    counters.until = now_;
    return go_on(port, priority);
  }
  ++counters.received_xoff;
  counters.until = now_ + Ticks{quanta} * 64 * ports_[port].ticks_per_byte;
  stop(port, priority);
  if (!counters.expiry_pending) {
    counters.expiry_pending = true;
    rare_.push(counters.until, RareKind::pause_expiry, port, priority);
  }
}

void Simulation::pause_expired(std::uint32_t port, unsigned priority) {
  auto& counters = pfc_[at(port, priority)];
  if (counters.until > now_) return rare_.push(counters.until, RareKind::pause_expiry, port, priority);
  counters.expiry_pending = false;
  go_on(port, priority);
}

void Simulation::stop(std::uint32_t port, unsigned priority) {
  Port& stopped = ports_[port];
  const auto bit = static_cast<std::uint8_t>(1u << priority);
  if ((stopped.paused & bit) || (stopped.deaf & bit)) return;
  stopped.paused |= bit;
  auto& counters = pfc_[at(port, priority)];
  counters.paused_since = now_;
  ++counters.stops;
}

void Simulation::go_on(std::uint32_t port, unsigned priority) {
  Port& stopped = ports_[port];
  const auto bit = static_cast<std::uint8_t>(1u << priority);
  if (!(stopped.paused & bit)) return;
  stopped.paused &= ~bit;
  auto& counters = pfc_[at(port, priority)];
  counters.paused += now_ - counters.paused_since;
  kick(port);
}

Ticks Simulation::paused_time(std::uint32_t port, unsigned priority) const {
  const auto& counters = pfc_[at(port, priority)];
  const bool now_paused = (ports_[port].paused >> priority) & 1;
  return counters.paused + (now_paused ? now_ - counters.paused_since : 0);
}

}  // namespace weir::fabric::sim
