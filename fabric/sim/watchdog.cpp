#include "fabric/sim/watchdog.hpp"

namespace weir::fabric::sim {

void PfcWatchdog::poll() {
  watched_.resize(net_.queues.size());
  for (std::uint32_t port = 0; port < net_.ports.size(); ++port) {
    if (net_.ports[port].nic != none) continue;
    for (unsigned priority = 0; priority < priorities; ++priority)
      watch(port, priority, watched_[NetworkState::at(port, priority)]);
  }
  net_.rare.push(net_.now + net_.run.watchdog.poll, RareKind::watchdog_poll);
}

void PfcWatchdog::watch(std::uint32_t port_index, unsigned priority, Watched& watched) {
  Port& port = net_.ports[port_index];
  const auto bit = static_cast<std::uint8_t>(1u << priority);
  const auto& counters = net_.pfc[NetworkState::at(port_index, priority)];
  if (watched.storming) {
    if (counters.received_xoff != watched.xoff) {
      watched.xoff = counters.received_xoff;
      watched.quiet_since = net_.now;
    }
    if (net_.now - watched.quiet_since < net_.run.watchdog.restoration) return;
    watched = Watched{};
    port.dropping &= ~bit;
    port.deaf &= ~bit;
    net_.incidents.push_back(
        {net_.now, Incident::Kind::storm_over, {port_index}, static_cast<std::uint8_t>(priority)});
    return;
  }
  const Queue& queue = net_.queues[NetworkState::at(port_index, priority)];
  const bool stuck = (port.paused & bit) && (port.waiting & bit) && queue.sent_packets == watched.sent;
  watched.sent = queue.sent_packets;
  if (!stuck) {
    watched.stuck_since = no_time;
    return;
  }
  if (watched.stuck_since == no_time) watched.stuck_since = net_.now;
  if (net_.now - watched.stuck_since < net_.run.watchdog.detection) return;
  net_.incidents.push_back(
      {net_.now, Incident::Kind::storm_detected, {port_index}, static_cast<std::uint8_t>(priority)});
  watched.storming = true;
  watched.quiet_since = net_.now;
  watched.xoff = counters.received_xoff;
  switch (net_.run.watchdog.action) {
    case WatchdogAction::alert:
      break;
    case WatchdogAction::drop:
      port.dropping |= bit;
      host_.drop_queue(port_index, priority);
      break;
    case WatchdogAction::forward:
      port.deaf |= bit;
      pfc_.go_on(port_index, priority);
      break;
  }
}

}  // namespace weir::fabric::sim
