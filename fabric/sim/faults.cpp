// Deliberate faults: links that fail and recover, and a NIC that sends XOFF endlessly.
#include <algorithm>
#include <span>

#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {

void Simulation::start_faults() {
  for (std::uint32_t i = 0; i < run_.faults.size(); ++i) rare_.push(run_.faults[i].time, RareKind::fault, i);
  for (std::uint32_t i = 0; i < run_.storms.size(); ++i) rare_.push(run_.storms[i].start, RareKind::storm, i);
}

// The switches at both ends notice at once and use other ports if they have any. A later fault brings the new
// routes of all other switches, once routing has converged.
void Simulation::fault(const Fault& fault) {
  if (fault.routes) {
    changed_routes_ = fault.routes;
    routes_ = changed_routes_.get();
  }
  if (fault.port == none) return leave_lost_nics();
  const std::uint32_t ends[] = {fault.port, ports_[fault.port].peer};
  for (const std::uint32_t end : ends) {
    if (ports_[end].up == fault.up) continue;
    ports_[end].up = fault.up;
    if (!fault.up) cut(end);
  }
  leave_lost_nics();
  incidents_.push_back(
      {now_, fault.up ? Incident::Kind::link_up : Incident::Kind::link_down, {fault.port}, 0});
  if (fault.up)
    for (const std::uint32_t end : ends) kick(end);
}

// Packets on the wire and in its queues are lost; a pause ends with the link.
void Simulation::cut(std::uint32_t port_index) {
  Port& port = ports_[port_index];
  // Packets on the wire stay there until their arrival event; receive() drops what a dead link delivers.
  for (unsigned priority = 0; priority < priorities; ++priority) {
    auto& group = groups_[at(port_index, priority)];
    group.paused = false;
    if (port.nic == none) drop_queue(port_index, priority);
    go_on(port_index, priority);
  }
}

// Whether routing has the flow's NIC on a path to its destination.
bool Simulation::leads_there(const Flow& flow) const {
  const RouteTable& routes = *routes_;
  const std::uint32_t row = routes.row[fabric_.hosts[flow.source]];
  const std::uint32_t group = routes.group[std::size_t{row} * routes.hosts + flow.destination];
  const auto ports = std::span(routes.ports).subspan(routes.first[group], routes.count[group]);
  const std::uint32_t port = nics_[flow.nic].port;
  return ports_[port].up && std::ranges::find(ports, port) != ports.end();
}

// Flows whose link is down, or no longer leads to their destination, continue over another NIC of the host.
void Simulation::leave_lost_nics() {
  std::vector<bool> left(nics_.size());
  const auto lost = [&](const Flow& flow) {
    return flow.id != none && nics_of_[flow.source].size() > 1 && !leads_there(flow);
  };
  for (const Flow& flow : flows_)
    if (lost(flow)) left[flow.nic] = true;
  for (std::size_t i = 0; i < nics_.size(); ++i) {
    if (!left[i]) continue;
    nics_[i].waiting = 0;
    nics_[i].ready_head.fill(none);
    nics_[i].ready_tail.fill(none);
    nics_[i].paced.clear();
  }
  for (std::uint32_t slot = 0; slot < flows_.size(); ++slot) {
    Flow& flow = flows_[slot];
    if (flow.id == none || !left[flow.nic]) continue;
    if (lost(flow)) flow.nic = choose_nic(flow);
    if (flow.place == Place::parked) continue;
    flow.place = Place::parked;
    make_ready(slot);
  }
}

void Simulation::drop_queue(std::uint32_t port_index, unsigned priority) {
  Port& port = ports_[port_index];
  Queue& queue = queues_[at(port_index, priority)];
  while (queue.head != none) {
    const std::uint32_t index = take_first(packets_, queue);
    const Packet& packet = packets_[index];
    PriorityGroup& group = groups_[at(packet.ingress, priority)];
    SharedPool& pool = pools_[port.node];
    release(pool, group, packet.cells);
    const std::uint32_t ingress = packet.ingress;
    ++queue.dropped;
    ++totals_.egress_drops;
    discard(index);
    if (group.paused && may_send_xon(pool, group)) resume_peer(ingress, priority);
  }
  queue.bytes = queue.cells = queue.deficit = 0;
  port.waiting &= ~(1u << priority);
}

void Simulation::storm(std::uint32_t index) {
  const Storm& storm = run_.storms[index];
  Ticks again = no_time;
  for (const std::uint32_t nic : nics_of_[storm.host]) {
    const std::uint32_t port = nics_[nic].port;
    ++groups_[at(port, storm.priority)].xoff_sent;
    send_pfc(port, storm.priority, quanta_of(port));
    again = std::min(again, now_ + Ticks{quanta_of(port)} * 64 * ports_[port].ticks_per_byte / 2);
  }
  if (again < storm.end) rare_.push(again, RareKind::storm, index);
}

}  // namespace weir::fabric::sim
