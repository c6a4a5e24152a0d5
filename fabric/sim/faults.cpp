// Deliberate faults: links that fail and recover, and a NIC that sends XOFF endlessly.
#include <algorithm>
#include <span>

#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {

void Simulation::start_faults() {
  for (std::uint32_t i = 0; i < net_.run.faults.size(); ++i)
    net_.rare.push(net_.run.faults[i].time, RareKind::fault, i);
  for (std::uint32_t i = 0; i < net_.run.storms.size(); ++i)
    net_.rare.push(net_.run.storms[i].start, RareKind::storm, i);
}

// The switches at both ends notice at once and use other ports if they have any. A later fault brings the new
// routes of all other switches, once routing has converged.
void Simulation::fault(const Fault& fault) {
  if (fault.routes) {
    changed_routes_ = fault.routes;
    net_.routes = changed_routes_.get();
  }
  if (fault.port == none) return leave_lost_nics();
  const std::uint32_t ends[] = {fault.port, net_.ports[fault.port].peer};
  for (const std::uint32_t end : ends) {
    if (net_.ports[end].up == fault.up) continue;
    net_.ports[end].up = fault.up;
    if (!fault.up) cut(end);
  }
  leave_lost_nics();
  net_.incidents.push_back(
      {net_.now, fault.up ? Incident::Kind::link_up : Incident::Kind::link_down, {fault.port}, 0});
  if (fault.up)
    for (const std::uint32_t end : ends) kick(end);
}

// Packets on the wire and in its queues are lost; a pause ends with the link.
void Simulation::cut(std::uint32_t port_index) {
  Port& port = net_.ports[port_index];
  // Packets on the wire stay there until their arrival event; receive() drops what a dead link delivers.
  for (unsigned priority = 0; priority < priorities; ++priority) {
    auto& group = net_.groups[at(port_index, priority)];
    group.paused = false;
    if (port.nic == none) drop_queue(port_index, priority);
    pfc_.go_on(port_index, priority);
  }
}

// Whether routing has the flow's NIC on a path to its destination.
bool Simulation::leads_there(const Flow& flow) const {
  const RouteTable& routes = *net_.routes;
  const std::uint32_t row = routes.row[net_.fabric.hosts[flow.source]];
  const std::uint32_t group = routes.group[std::size_t{row} * routes.hosts + flow.destination];
  const auto ports = std::span(routes.ports).subspan(routes.first[group], routes.count[group]);
  const std::uint32_t port = nics_[flow.nic].port;
  return net_.ports[port].up && std::ranges::find(ports, port) != ports.end();
}

// Flows whose link is down, or no longer leads to their destination, continue over another NIC of the host.
void Simulation::leave_lost_nics() {
  std::vector<bool> left(nics_.size());
  const auto lost = [&](const Flow& flow) {
    return (flow.id != none || flow.live) && nics_of_[flow.source].size() > 1 && !leads_there(flow);
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
    if ((flow.id == none && !flow.live) || !left[flow.nic]) continue;
    if (lost(flow)) flow.nic = choose_nic(flow);
    if (flow.place == Place::parked) continue;
    flow.place = Place::parked;
    make_ready(slot);
  }
}

void Simulation::drop_queue(std::uint32_t port_index, unsigned priority) {
  Port& port = net_.ports[port_index];
  Queue& queue = net_.queues[at(port_index, priority)];
  while (queue.head != none) {
    const std::uint32_t index = take_first(net_.packets, queue);
    const Packet& packet = net_.packets[index];
    PriorityGroup& group = net_.groups[at(packet.ingress, priority)];
    SharedPool& pool = net_.pools[port.node];
    release(pool, group, packet.cells);
    const std::uint32_t ingress = packet.ingress;
    ++queue.dropped;
    ++net_.totals.egress_drops;
    discard(index);
    if (group.paused && may_send_xon(pool, group)) pfc_.resume_peer(ingress, priority);
  }
  queue.bytes = queue.cells = queue.deficit = 0;
  port.waiting &= ~(1u << priority);
}

void Simulation::storm(std::uint32_t index) {
  const Storm& storm = net_.run.storms[index];
  Ticks again = no_time;
  for (const std::uint32_t nic : nics_of_[storm.host]) {
    const std::uint32_t port = nics_[nic].port;
    ++net_.groups[at(port, storm.priority)].xoff_sent;
    pfc_.send(port, storm.priority, pfc_.quanta_of(port));
    again =
        std::min(again, net_.now + Ticks{pfc_.quanta_of(port)} * 64 * net_.ports[port].ticks_per_byte / 2);
  }
  if (again < storm.end) net_.rare.push(again, RareKind::storm, index);
}

}  // namespace weir::fabric::sim
