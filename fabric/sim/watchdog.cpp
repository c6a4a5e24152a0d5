// The PFC watchdog as SONiC configures it. A queue is in a storm if PFC stops it and it holds packets and
// sends none for the detection time. Then its packets are dropped (or sent despite the pause) until no XOFF
// has come for the restoration time.
#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {

void Simulation::watchdog_poll() {
  watched_.resize(queues_.size());
  for (std::uint32_t port = 0; port < ports_.size(); ++port) {
    if (ports_[port].nic != none) continue;
    for (unsigned priority = 0; priority < priorities; ++priority)
      watch(port, priority, watched_[at(port, priority)]);
  }
  rare_.push(now_ + run_.watchdog.poll, RareKind::watchdog_poll);
}

void Simulation::watch(std::uint32_t port_index, unsigned priority, Watched& watched) {
  Port& port = ports_[port_index];
  const auto bit = static_cast<std::uint8_t>(1u << priority);
  const auto& counters = pfc_[at(port_index, priority)];
  if (watched.storming) {
    if (counters.received_xoff != watched.xoff) {
      watched.xoff = counters.received_xoff;
      watched.quiet_since = now_;
    }
    if (now_ - watched.quiet_since < run_.watchdog.restoration) return;
    watched = Watched{};
    port.dropping &= ~bit;
    port.deaf &= ~bit;
    incidents_.push_back(
        {now_, Incident::Kind::storm_over, {port_index}, static_cast<std::uint8_t>(priority)});
    return;
  }
  const Queue& queue = queues_[at(port_index, priority)];
  const bool stuck = (port.paused & bit) && (port.waiting & bit) && queue.sent_packets == watched.sent;
  watched.sent = queue.sent_packets;
  if (!stuck) {
    watched.stuck_since = no_time;
    return;
  }
  if (watched.stuck_since == no_time) watched.stuck_since = now_;
  if (now_ - watched.stuck_since < run_.watchdog.detection) return;
  incidents_.push_back(
      {now_, Incident::Kind::storm_detected, {port_index}, static_cast<std::uint8_t>(priority)});
  watched.storming = true;
  watched.quiet_since = now_;
  watched.xoff = counters.received_xoff;
  switch (run_.watchdog.action) {
    case WatchdogAction::alert:
      break;
    case WatchdogAction::drop:
      port.dropping |= bit;
      drop_queue(port_index, priority);
      break;
    case WatchdogAction::forward:
      port.deaf |= bit;
      go_on(port_index, priority);
      break;
  }
}

}  // namespace weir::fabric::sim
