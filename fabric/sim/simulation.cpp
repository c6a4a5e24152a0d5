#include "fabric/sim/simulation.hpp"

#include <algorithm>
#include <numeric>

namespace weir::fabric::sim {
namespace {

// DWRR: the bytes that a queue of the smallest weight may send per turn; at least a frame, so that
// every turn sends something.
constexpr std::uint32_t quantum_bytes = 2048;

}  // namespace

Simulation::Simulation(const Fabric& fabric, const Experiment& run) : net_(fabric, run) {
  nics_of_.resize(fabric.hosts.size());
  build_ports();
  results_.resize(run.flows.size());
  start_order_.resize(run.flows.size());
  std::iota(start_order_.begin(), start_order_.end(), 0u);
  std::erase_if(start_order_, [&](std::uint32_t id) { return run.flows[id].start == no_time; });
  std::stable_sort(start_order_.begin(), start_order_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return run.flows[a].start < run.flows[b].start; });
  next_start_ = start_order_.empty() ? no_time : run.flows[start_order_[0]].start;
  for (std::uint32_t i = 0; i < run.pauses.size(); ++i)
    if (run.pauses[i].start != no_time)
      net_.rare.push(run.pauses[i].start + run.pauses[i].length, RareKind::pause, i);
  start_faults();
  if (run.sample_interval != 0) net_.rare.push(0, RareKind::sample);
  sample_ordered_ = run.sample_interval != 0;
  if (run.watchdog.on) net_.rare.push(run.watchdog.poll, RareKind::watchdog_poll);
  if (run.deadlock_check != 0) net_.rare.push(run.deadlock_check, RareKind::deadlock_check);
}

void Simulation::build_ports() {
  for (std::uint32_t n = 0; n < net_.fabric.nodes.size(); ++n) {
    if (net_.fabric.nodes[n].host) continue;
    const auto& settings = net_.fabric.switches[net_.fabric.nodes[n].settings];
    auto& pool = net_.pools[n];
    pool.cell_bytes = settings.cell_bytes;
    pool.size = settings.shared_bytes / settings.cell_bytes;
    pool.headroom_size = settings.headroom_pool_bytes / settings.cell_bytes;
    pool.settings = net_.fabric.nodes[n].settings;
  }
  std::vector<std::uint32_t> address(net_.fabric.nodes.size(), none);
  for (std::uint32_t h = 0; h < net_.fabric.hosts.size(); ++h) address[net_.fabric.hosts[h]] = h;
  for (std::uint32_t p = 0; p < net_.ports.size(); ++p) {
    const auto& from = net_.fabric.ports[p];
    auto& port = net_.ports[p];
    port.peer = from.peer;
    port.node = from.node;
    port.peer_node = net_.fabric.ports[from.peer].node;
    port.peer_is_host = net_.fabric.nodes[port.peer_node].host;
    port.ticks_per_byte = ticks_per_byte(from.gbps);
    port.latency = static_cast<std::uint32_t>(from.delay + net_.fabric.ports[from.peer].pipeline);
    if (net_.fabric.nodes[from.node].host) {
      port.nic = static_cast<std::uint32_t>(nics_.size());
      nics_of_[address[from.node]].push_back(port.nic);
      auto& nic = nics_.emplace_back();
      nic.port = p;
      nic.line_rate = from.gbps * 1e9;
      nic.window = window_packets(nic.line_rate);
      nic.ready_head.fill(none);
      nic.ready_tail.fill(none);
      port.strict = 0xff;
      continue;
    }
    const auto& settings = net_.fabric.switches[net_.fabric.nodes[from.node].settings];
    const auto& pool = net_.pools[from.node];
    const auto lightest = std::ranges::min(settings.priority, {}, &PrioritySettings::weight).weight;
    for (unsigned i = 0; i < priorities; ++i) {
      const auto& rule = settings.priority[i];
      if (rule.strict) port.strict |= 1u << i;
      net_.queues[at(p, i)].quantum = quantum_bytes * std::max(1u, rule.weight) / std::max(1u, lightest);
      net_.queues[at(p, i)].alpha =
          rule.lossless ? 0 : static_cast<std::uint32_t>(alpha_factor(rule.egress_alpha));
      const Wred& wred = from.own_wred ? from.wred[i] : rule.wred;
      net_.queues[at(p, i)].kmin_bytes = wred.kmin_bytes;
      net_.queues[at(p, i)].kmax_bytes = wred.kmax_bytes;
      net_.pmax[at(p, i)] = wred.pmax;
      auto& group = net_.groups[at(p, i)];
      group.lossless = rule.lossless;
      group.alpha = static_cast<std::uint32_t>(alpha_factor(rule.alpha));
      group.guaranteed = from.guaranteed_bytes[i] / pool.cell_bytes;
      group.headroom = from.headroom_bytes[i] / pool.cell_bytes;
      group.xon = rule.xon_bytes / pool.cell_bytes;
      group.xon_offset = rule.xon_offset_bytes / pool.cell_bytes;
    }
  }
}

bool Simulation::run_some(std::uint64_t events, Ticks until) {
  const std::uint64_t stop_at = net_.totals.events + events;
  const Ticks last = std::min(until, net_.run.duration);
  const bool endless = net_.run.flows.empty() || live_.carried();
  while (net_.totals.events < stop_at) {
    if (!endless && net_.totals.finished == net_.run.flows.size()) return false;
    const std::uint64_t first = net_.events.first();
    const Ticks port_time = PortEvents::time_of(first);  // for no_key: later than any time
    const Ticks rare_time = net_.rare.next_time();
    if (port_time < rare_time && port_time < next_start_ && port_time <= last) {
      net_.now = port_time;
      ++net_.totals.events;
      const std::uint32_t source = net_.events.source_of(first);
      prefetch_ahead();
      if (source % 2 == 0)
        receive(source / 2);
      else
        transmit_event(source / 2);
      continue;
    }
    const Ticks next = std::min(rare_time, next_start_);
    if (next > last) {  // also if nothing is left
      net_.now = last;
      return last < net_.run.duration;
    }
    net_.now = next;
    ++net_.totals.events;
    if (next_start_ == next)
      start_due_flows();
    else
      rare(net_.rare.pop());
  }
  return true;
}

Ticks Simulation::next_time() {
  const std::uint64_t first = net_.events.first();
  const Ticks port_time = first == PortEvents::no_key ? no_time : PortEvents::time_of(first);
  return std::min({port_time, net_.rare.next_time(), next_start_});
}

// A large network spends most of its time waiting for memory, but the next events are known. So this
// prefetches the ports of the next stretch of time, the packets of this one, and what the next event uses.
void Simulation::prefetch_ahead() {
  if (net_.events.turned()) {
    net_.events.visit_following(
        [&](std::uint32_t source) { __builtin_prefetch(&net_.ports[source / 2], 1); });
    for (const std::uint64_t key : net_.events.run()) {
      const std::uint32_t head = net_.ports[net_.events.source_of(key) / 2].wire_head;
      if (head == none) continue;
      __builtin_prefetch(&net_.packets[head], 1);
      __builtin_prefetch(&net_.packets.next(head));
    }
  }
  const std::uint64_t key = net_.events.ahead(1);
  if (key == 0) return;
  const std::uint32_t source = net_.events.source_of(key);
  const Port& port = net_.ports[source / 2];
  if (source % 2 == 1) {
    for (unsigned waiting = port.waiting; waiting != 0; waiting &= waiting - 1)
      __builtin_prefetch(&net_.queues[at(source / 2, static_cast<unsigned>(std::countr_zero(waiting)))], 1);
    return;
  }
  const Packet& packet = net_.packets[port.wire_head];
  if (const std::uint32_t behind = net_.packets.next(port.wire_head); behind != none)
    __builtin_prefetch(&net_.packets.arrival(behind));
  if (port.peer_is_host) {
    if (packet.kind == live_kind) return;
    const auto* flow = reinterpret_cast<const char*>(&flows_[packet.flow]);
    for (std::size_t line = 0; line < sizeof(Flow); line += 64) __builtin_prefetch(flow + line, 1);
    return;
  }
  __builtin_prefetch(&net_.groups[at(port.peer, packet.priority)], 1);
  if (net_.routes_stay && packet.out != no_port) {
    __builtin_prefetch(&net_.ports[packet.out], 1);
    __builtin_prefetch(&net_.queues[at(packet.out, packet.priority)], 1);
  }
}

void Simulation::rare(const RareEvent& event) {
  switch (event.kind) {
    case RareKind::pfc_arrival:
      return pfc_.arrived(event.a, event.b & 0xff, event.b >> 8);
    case RareKind::pfc_refresh:
      return pfc_.refresh(event.a, event.b);
    case RareKind::pause_expiry:
      return pfc_.expired(event.a, event.b);
    case RareKind::retransmission:
      return retransmission_timer(event.a, event.b);
    case RareKind::sample:
      return take_sample();
    case RareKind::watchdog_poll:
      return watchdog_.poll();
    case RareKind::deadlock_check:
      return deadlocks_.look();
    case RareKind::fault:
      return fault(net_.run.faults[event.a]);
    case RareKind::storm:
      return storm(event.a);
    case RareKind::pause:
      return start_followers(event.a | pause_bit);
  }
}

// Among programs the next one is ordered by the packet that ends the silence (send_live).
void Simulation::take_sample() {
  samples_.keep(static_cast<std::uint32_t>(alive_));
  sample_ordered_ = !live_.carried() || net_.packets.in_use() != 0 || alive_ != 0;
  if (sample_ordered_) samples_.order_next();
}

// The first packet on the wire behind `out` has reached the far end.
void Simulation::receive(std::uint32_t out) {
  Port& from = net_.ports[out];
  const std::uint32_t index = from.wire_head;
  from.wire_head = net_.packets.next(index);
  if (from.wire_head == none)
    net_.events.pop();
  else
    net_.events.replace_top(net_.events.key(net_.packets.arrival(from.wire_head), arrival_source(out)));
  if (!from.up) {
    ++net_.totals.link_drops;
    return discard(index);
  }
  ++net_.totals.hops;
  if (from.peer_is_host)
    receive_at_host(from.peer, index);
  else
    receive_at_switch(from.peer, from.peer_node, index);
}

std::uint32_t Simulation::next_hop(std::uint32_t node, const Packet& packet) const {
  const RouteTable& routes = *net_.routes;
  const std::uint32_t group = routes.group[std::size_t{routes.row[node]} * routes.hosts + packet.destination];
  const std::uint32_t* choice = routes.ports.data() + routes.first[group];
  const std::uint32_t count = routes.count[group];
  if (count == 0) return no_port;
  if (count == 1) return net_.routes_stay || net_.ports[*choice].up ? *choice : no_port;
  // Each switch hashes differently, or all switches of a second stage would choose alike.
  const auto spread = static_cast<std::uint32_t>(mix((std::uint64_t{node} << 12) | packet.hash));
  const auto first = static_cast<std::uint32_t>((std::uint64_t{spread} * count) >> 32);
  if (net_.routes_stay) return choice[first];  // do not read the port, which is in no cache yet
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t port = choice[(first + i) % count];
    if (net_.ports[port].up) return port;
  }
  return no_port;
}

// The ports of the switches on a flow's path in one direction, as next_hop() would choose them.
void Simulation::find_path(Path& path, const Packet& packet, std::uint32_t from_port) {
  std::uint32_t out = from_port;
  for (auto& port : path.ports) {
    port = no_port;
    if (out == no_port || net_.ports[out].peer_is_host) continue;
    port = out = next_hop(net_.ports[out].peer_node, packet);
  }
}

void Simulation::discard(std::uint32_t index) {
  const Packet& packet = net_.packets[index];
  if (packet.kind == live_kind) return live_.lost(index);
  const std::uint32_t slot = packet.flow;
  if (packet.kind == data_kind) flows_[slot].miss(packet.psn);
  net_.packets.give_back(index);
  packet_gone(slot);
}

void Simulation::receive_at_switch(std::uint32_t in, std::uint32_t node, std::uint32_t index) {
  Packet& packet = net_.packets[index];
  const std::uint32_t out = net_.routes_stay ? packet.out : next_hop(node, packet);
  if (out == no_port) {
    ++net_.totals.link_drops;
    return discard(index);
  }
  const unsigned priority = packet.priority;
  SharedPool& pool = net_.pools[node];
  Queue& queue = net_.queues[at(out, priority)];
  PriorityGroup& group = net_.groups[at(in, priority)];
  const std::uint32_t cells = pool.cells(packet.bytes);
  Port& port = net_.ports[out];
  const bool doomed = (port.dropping >> priority) & 1;
  if (doomed || (queue.alpha != 0 && queue.cells + cells > pool.threshold(queue.alpha))) {
    ++queue.dropped;
    ++net_.totals.egress_drops;
    return discard(index);
  }
  const Admission admission = admit(pool, group, cells);
  if (admission != Admission::taken) {
    if (group.lossless && !group.paused) pfc_.pause_peer(in, priority);
    if (admission == Admission::dropped) {
      ++net_.totals.ingress_drops;
      net_.totals.lossless_drops += group.lossless;
      return discard(index);
    }
  }
  packet.ingress = in;
  packet.cells = static_cast<std::uint16_t>(cells);
  if (net_.mark_at == MarkAt::enqueue) mark(queue, out, packet);
  append(net_.packets, queue, index);
  queue.bytes += packet.bytes;
  queue.cells += cells;
  queue.bytes_most = std::max(queue.bytes_most, queue.bytes);
  port.waiting |= 1u << priority;
  kick(out);
}

// `queue` of the port `out` has the packet not yet, or no longer.
void Simulation::mark(Queue& queue, std::uint32_t out, Packet& packet) {
  if (queue.kmax_bytes == 0 || queue.bytes < queue.kmin_bytes) return;
  if (packet.kind != data_kind && !packet.ecn_capable) return;
  if (queue.bytes < queue.kmax_bytes) {
    const double pmax = net_.pmax[at(out, packet.priority)];
    const double part =
        static_cast<double>(queue.bytes - queue.kmin_bytes) / (queue.kmax_bytes - queue.kmin_bytes);
    if (net_.random.unit() >= pmax * part) return;
  }
  packet.marked = 1;
  ++queue.marked;
  ++net_.totals.marked;
}

// HPCC: the packet that leaves takes a reading of its port along.
void Simulation::read_link(std::uint32_t port_index, std::uint32_t packet) {
  rnic::congestion::LinkReading reading;
  reading.time = net_.now;
  reading.rate = net_.fabric.ports[port_index].gbps * 1e9;
  for (unsigned i = 0; i < priorities; ++i) {
    const Queue& queue = net_.queues[at(port_index, i)];
    reading.queue_bytes += queue.bytes;
    reading.sent_bytes += queue.sent_bytes;
  }
  net_.packets.report(packet).add(reading);
}

void Simulation::want_transmit(std::uint32_t port_index, Ticks when) {
  Port& port = net_.ports[port_index];
  if (when >= port.transmit_at) return;
  port.transmit_at = when;
  net_.events.push(net_.events.key(when, transmit_source(port_index)));
}

// A packet may have become ready to leave through this port.
void Simulation::kick(std::uint32_t port_index) {
  Port& port = net_.ports[port_index];
  if (port.free_at > net_.now) return want_transmit(port_index, port.free_at);
  const Ticks again = transmit(port_index);
  if (again != no_time) want_transmit(port_index, again);
}

void Simulation::transmit_event(std::uint32_t port_index) {
  Port& port = net_.ports[port_index];
  if (port.transmit_at != net_.now) return net_.events.pop();  // an earlier one has replaced it
  Ticks again = port.free_at;  // later than now if a PFC frame was sent before
  if (port.free_at <= net_.now) {
    port.transmit_at = no_time;
    again = transmit(port_index);
  }
  // Events pushed meanwhile are later than now, so this event is still the top.
  port.transmit_at = again;
  if (again == no_time)
    net_.events.pop();
  else
    net_.events.replace_top(net_.events.key(again, transmit_source(port_index)));
}

// The port is free: sends the next packet. Returns when to look again; no_time: at the next arrival.
Ticks Simulation::transmit(std::uint32_t port_index) {
  Port& port = net_.ports[port_index];
  if (!port.up) return no_time;
  if (port.nic != none) return transmit_from_host(port_index);
  const unsigned ready = port.waiting & ~port.paused;
  if (ready == 0) return no_time;
  forward(port_index, ready);
  return (port.waiting & ~port.paused) != 0 ? port.free_at : no_time;
}

// Sends the next packet of the queues in `ready` and frees its cells.
void Simulation::forward(std::uint32_t port_index, unsigned ready) {
  Port& port = net_.ports[port_index];
  const unsigned priority =
      pick(port, std::span(&net_.queues[at(port_index, 0)], priorities), net_.packets, ready);
  Queue& queue = net_.queues[at(port_index, priority)];
  const std::uint32_t index = take_first(net_.packets, queue);
  Packet& packet = net_.packets[index];
  queue.bytes -= packet.bytes;
  queue.cells -= packet.cells;
  ++queue.sent_packets;
  queue.sent_bytes += packet.bytes;
  if (queue.head == none) {
    port.waiting &= ~(1u << priority);
    queue.deficit = 0;
  }
  if (port.nic == none) {
    if (net_.mark_at == MarkAt::dequeue) mark(queue, port_index, packet);
    if (net_.transport.control == CongestionControl::hpcc && packet.kind == data_kind)
      read_link(port_index, index);
    PriorityGroup& group = net_.groups[at(packet.ingress, priority)];
    SharedPool& pool = net_.pools[port.node];
    release(pool, group, packet.cells);
    if (group.paused && may_send_xon(pool, group)) pfc_.resume_peer(packet.ingress, priority);
  }
  put_on_wire(port, port_index, index);
}

void Simulation::put_on_wire(Port& port, std::uint32_t port_index, std::uint32_t index) {
  Packet& packet = net_.packets[index];
  if (net_.routes_stay && !port.peer_is_host) {
    if (packet.kind == live_kind || packet.hop == Path::most) {
      packet.out = next_hop(port.peer_node, packet);
    } else {
      const Path& path = paths_[2 * std::size_t{packet.flow} + (packet.kind != data_kind)];
      packet.out = path.ports[packet.hop++];
    }
  }
  const Ticks frame = Ticks{packet.bytes} * port.ticks_per_byte;
  // A PFC frame that resume_peer has just sent through this port goes first.
  const Ticks begin = std::max(net_.now, port.free_at);
  if (packet.kind == live_kind) live_.leaves(index, port_index, begin);
  port.free_at = begin + frame + Ticks{net_.transport.gap_bytes} * port.ticks_per_byte;
  const Ticks arrival = begin + frame + port.latency;
  net_.packets.arrival(index) = arrival;
  net_.packets.next(index) = none;
  if (port.wire_head == none) {
    port.wire_head = index;
    net_.events.push(net_.events.key(arrival, arrival_source(port_index)));
  } else {
    net_.packets.next(port.wire_tail) = index;
  }
  port.wire_tail = index;
}

}  // namespace weir::fabric::sim
