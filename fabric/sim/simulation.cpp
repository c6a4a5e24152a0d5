#include "fabric/sim/simulation.hpp"

#include <algorithm>
#include <numeric>

namespace weir::fabric::sim {
namespace {

// DWRR: the bytes that a queue of the smallest weight may send per turn; at least a frame, so that
// every turn sends something.
constexpr std::uint32_t quantum_bytes = 2048;

}  // namespace

Simulation::Simulation(const Fabric& fabric, const Experiment& run)
    : fabric_(fabric),
      run_(run),
      transport_(run.transport),
      routes_(&fabric.routes),
      routes_stay_(run.faults.empty()),
      random_(mix(run.seed)) {
  if (transport_.window_bytes != 0)
    window_packets_ = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(1, transport_.window_bytes / transport_.mtu_bytes));
  ports_.resize(fabric.ports.size());
  queues_.resize(ports_.size() * priorities);
  groups_.resize(ports_.size() * priorities);
  pfc_.resize(ports_.size() * priorities);
  pmax_.resize(ports_.size() * priorities);
  pools_.resize(fabric.nodes.size());
  nics_of_.resize(fabric.hosts.size());
  build_ports();
  results_.resize(run.flows.size());
  start_order_.resize(run.flows.size());
  std::iota(start_order_.begin(), start_order_.end(), 0u);
  std::erase_if(start_order_, [&](std::uint32_t id) { return run.flows[id].start == no_time; });
  std::stable_sort(start_order_.begin(), start_order_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return run.flows[a].start < run.flows[b].start; });
  next_start_ = start_order_.empty() ? no_time : run.flows[start_order_[0]].start;
  start_faults();
  series_.interval = run.sample_interval;
  used_priorities_ = static_cast<std::uint8_t>(1u << transport_.control_priority);
  for (const auto& flow : run.flows) used_priorities_ |= static_cast<std::uint8_t>(1u << flow.priority);
  for (const auto& storm : run.storms) used_priorities_ |= static_cast<std::uint8_t>(1u << storm.priority);
  if (run.sample_interval != 0) rare_.push(0, RareKind::sample);
  if (run.watchdog.on) rare_.push(run.watchdog.poll, RareKind::watchdog_poll);
  if (run.deadlock_check != 0) rare_.push(run.deadlock_check, RareKind::deadlock_check);
}

void Simulation::build_ports() {
  for (std::uint32_t n = 0; n < fabric_.nodes.size(); ++n) {
    if (fabric_.nodes[n].host) continue;
    const auto& settings = fabric_.switches[fabric_.nodes[n].settings];
    auto& pool = pools_[n];
    pool.cell_bytes = settings.cell_bytes;
    pool.size = settings.shared_bytes / settings.cell_bytes;
    pool.headroom_size = settings.headroom_pool_bytes / settings.cell_bytes;
    pool.settings = fabric_.nodes[n].settings;
  }
  std::vector<std::uint32_t> address(fabric_.nodes.size(), none);
  for (std::uint32_t h = 0; h < fabric_.hosts.size(); ++h) address[fabric_.hosts[h]] = h;
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    const auto& from = fabric_.ports[p];
    auto& port = ports_[p];
    port.peer = from.peer;
    port.node = from.node;
    port.peer_node = fabric_.ports[from.peer].node;
    port.peer_is_host = fabric_.nodes[port.peer_node].host;
    port.ticks_per_byte = ticks_per_byte(from.gbps);
    port.latency = static_cast<std::uint32_t>(from.delay + fabric_.ports[from.peer].pipeline);
    if (fabric_.nodes[from.node].host) {
      port.nic = static_cast<std::uint32_t>(nics_.size());
      nics_of_[address[from.node]].push_back(port.nic);
      auto& nic = nics_.emplace_back();
      nic.port = p;
      nic.line_rate = from.gbps * 1e9;
      nic.ready_head.fill(none);
      nic.ready_tail.fill(none);
      port.strict = 0xff;
      continue;
    }
    const auto& settings = fabric_.switches[fabric_.nodes[from.node].settings];
    const auto& pool = pools_[from.node];
    const auto lightest = std::ranges::min(settings.priority, {}, &PrioritySettings::weight).weight;
    for (unsigned i = 0; i < priorities; ++i) {
      const auto& rule = settings.priority[i];
      if (rule.strict) port.strict |= 1u << i;
      queues_[at(p, i)].quantum = quantum_bytes * std::max(1u, rule.weight) / std::max(1u, lightest);
      queues_[at(p, i)].alpha =
          rule.lossless ? 0 : static_cast<std::uint32_t>(alpha_factor(rule.egress_alpha));
      const Wred& wred = from.own_wred ? from.wred[i] : rule.wred;
      queues_[at(p, i)].kmin_bytes = wred.kmin_bytes;
      queues_[at(p, i)].kmax_bytes = wred.kmax_bytes;
      pmax_[at(p, i)] = wred.pmax;
      auto& group = groups_[at(p, i)];
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
  const std::uint64_t stop_at = totals_.events + events;
  const Ticks last = std::min(until, run_.duration);
  const bool endless = run_.flows.empty();
  while (totals_.events < stop_at) {
    if (!endless && totals_.finished == run_.flows.size()) return false;
    const std::uint64_t first = events_.first();
    const Ticks port_time = PortEvents::time_of(first);  // for no_key: later than any time
    const Ticks rare_time = rare_.next_time();
    if (port_time < rare_time && port_time < next_start_ && port_time <= last) {
      now_ = port_time;
      ++totals_.events;
      const std::uint32_t source = PortEvents::source_of(first);
      prefetch_ahead();
      if (source % 2 == 0)
        receive(source / 2);
      else
        transmit_event(source / 2);
      continue;
    }
    const Ticks next = std::min(rare_time, next_start_);
    if (next > last) {  // also if nothing is left
      now_ = last;
      return last < run_.duration;
    }
    now_ = next;
    ++totals_.events;
    if (next_start_ == next)
      start_due_flows();
    else
      rare(rare_.pop());
  }
  return true;
}

// A large network spends most of its time waiting for memory, but the next events are known. So this
// prefetches the ports of the next stretch of time, the packets of this one, and what the next event uses.
void Simulation::prefetch_ahead() {
  if (events_.turned()) {
    for (const std::uint32_t key : events_.following())
      __builtin_prefetch(&ports_[PortEvents::source_of(key) / 2], 1);
    for (const std::uint64_t key : events_.run()) {
      const std::uint32_t head = ports_[PortEvents::source_of(key) / 2].wire_head;
      if (head == none) continue;
      __builtin_prefetch(&packets_[head], 1);
      __builtin_prefetch(&packets_.next(head));
    }
  }
  const std::uint64_t key = events_.ahead(1);
  if (key == 0) return;
  const std::uint32_t source = PortEvents::source_of(key);
  const Port& port = ports_[source / 2];
  if (source % 2 == 1) {
    for (unsigned waiting = port.waiting; waiting != 0; waiting &= waiting - 1)
      __builtin_prefetch(&queues_[at(source / 2, static_cast<unsigned>(std::countr_zero(waiting)))], 1);
    return;
  }
  const Packet& packet = packets_[port.wire_head];
  if (const std::uint32_t behind = packets_.next(port.wire_head); behind != none)
    __builtin_prefetch(&packets_.arrival(behind));
  if (port.peer_is_host) {
    const auto* flow = reinterpret_cast<const char*>(&flows_[packet.flow]);
    for (std::size_t line = 0; line < sizeof(Flow); line += 64) __builtin_prefetch(flow + line, 1);
    return;
  }
  __builtin_prefetch(&groups_[at(port.peer, packet.priority)], 1);
  if (routes_stay_ && packet.out != no_port) {
    __builtin_prefetch(&ports_[packet.out], 1);
    __builtin_prefetch(&queues_[at(packet.out, packet.priority)], 1);
  }
}

void Simulation::rare(const RareEvent& event) {
  switch (event.kind) {
    case RareKind::pfc_arrival:
      return pfc_arrived(event.a, event.b & 0xff, event.b >> 8);
    case RareKind::pfc_refresh:
      return refresh_pause(event.a, event.b);
    case RareKind::pause_expiry:
      return pause_expired(event.a, event.b);
    case RareKind::retransmission:
      return retransmission_timer(event.a, event.b);
    case RareKind::sample:
      return take_sample();
    case RareKind::watchdog_poll:
      return watchdog_poll();
    case RareKind::deadlock_check:
      return check_deadlock();
    case RareKind::fault:
      return fault(run_.faults[event.a]);
    case RareKind::storm:
      return storm(event.a);
  }
}

// The first packet on the wire behind `out` has reached the far end.
void Simulation::receive(std::uint32_t out) {
  Port& from = ports_[out];
  const std::uint32_t index = from.wire_head;
  from.wire_head = packets_.next(index);
  if (from.wire_head == none)
    events_.pop();
  else
    events_.replace_top(PortEvents::key(packets_.arrival(from.wire_head), arrival_source(out)));
  if (!from.up) {
    ++totals_.link_drops;
    return discard(index);
  }
  ++totals_.hops;
  if (from.peer_is_host)
    receive_at_host(from.peer, index);
  else
    receive_at_switch(from.peer, from.peer_node, index);
}

std::uint32_t Simulation::next_hop(std::uint32_t node, const Packet& packet) const {
  const RouteTable& routes = *routes_;
  const std::uint32_t group = routes.group[std::size_t{routes.row[node]} * routes.hosts + packet.destination];
  const std::uint32_t* choice = routes.ports.data() + routes.first[group];
  const std::uint32_t count = routes.count[group];
  if (count == 0) return no_port;
  if (count == 1) return routes_stay_ || ports_[*choice].up ? *choice : no_port;
  // Each switch hashes differently, or all switches of a second stage would choose alike.
  const auto spread = static_cast<std::uint32_t>(mix((std::uint64_t{node} << 12) | packet.hash));
  const auto first = static_cast<std::uint32_t>((std::uint64_t{spread} * count) >> 32);
  if (routes_stay_) return choice[first];  // do not read the port, which is in no cache yet
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t port = choice[(first + i) % count];
    if (ports_[port].up) return port;
  }
  return no_port;
}

// The ports of the switches on a flow's path in one direction, as next_hop() would choose them.
void Simulation::find_path(Path& path, const Packet& packet, std::uint32_t from_port) {
  std::uint32_t out = from_port;
  for (auto& port : path.ports) {
    port = no_port;
    if (out == no_port || ports_[out].peer_is_host) continue;
    port = out = next_hop(ports_[out].peer_node, packet);
  }
}

void Simulation::discard(std::uint32_t index) {
  const std::uint32_t slot = packets_[index].flow;
  packets_.give_back(index);
  packet_gone(slot);
}

void Simulation::receive_at_switch(std::uint32_t in, std::uint32_t node, std::uint32_t index) {
  Packet& packet = packets_[index];
  const std::uint32_t out = routes_stay_ ? packet.out : next_hop(node, packet);
  if (out == no_port) {
    ++totals_.link_drops;
    return discard(index);
  }
  const unsigned priority = packet.priority;
  SharedPool& pool = pools_[node];
  Queue& queue = queues_[at(out, priority)];
  PriorityGroup& group = groups_[at(in, priority)];
  const std::uint32_t cells = pool.cells(packet.bytes);
  Port& port = ports_[out];
  const bool doomed = (port.dropping >> priority) & 1;
  if (doomed || (queue.alpha != 0 && queue.cells + cells > pool.threshold(queue.alpha))) {
    ++queue.dropped;
    ++totals_.egress_drops;
    return discard(index);
  }
  const Admission admission = admit(pool, group, cells);
  if (admission != Admission::taken) {
    if (group.lossless && !group.paused) pause_peer(in, priority);
    if (admission == Admission::dropped) {
      ++totals_.ingress_drops;
      totals_.lossless_drops += group.lossless;
      return discard(index);
    }
  }
  packet.ingress = in;
  packet.cells = static_cast<std::uint16_t>(cells);
  if (queue.kmax_bytes != 0 && queue.bytes >= queue.kmin_bytes) mark(queue, pmax_[at(out, priority)], packet);
  append(packets_, queue, index);
  queue.bytes += packet.bytes;
  queue.cells += cells;
  queue.bytes_most = std::max(queue.bytes_most, queue.bytes);
  port.waiting |= 1u << priority;
  kick(out);
}

void Simulation::mark(Queue& queue, double pmax, Packet& packet) {
  if (packet.kind != static_cast<unsigned>(PacketKind::data)) return;  // not ECN-capable
  if (queue.bytes < queue.kmax_bytes) {
    const double part =
        static_cast<double>(queue.bytes - queue.kmin_bytes) / (queue.kmax_bytes - queue.kmin_bytes);
    if (random_.unit() >= pmax * part) return;
  }
  packet.marked = 1;
  ++queue.marked;
  ++totals_.marked;
}

void Simulation::want_transmit(std::uint32_t port_index, Ticks when) {
  Port& port = ports_[port_index];
  if (when >= port.transmit_at) return;
  port.transmit_at = when;
  events_.push(PortEvents::key(when, transmit_source(port_index)));
}

// A packet may have become ready to leave through this port.
void Simulation::kick(std::uint32_t port_index) {
  Port& port = ports_[port_index];
  if (port.free_at > now_) return want_transmit(port_index, port.free_at);
  const Ticks again = transmit(port_index);
  if (again != no_time) want_transmit(port_index, again);
}

void Simulation::transmit_event(std::uint32_t port_index) {
  Port& port = ports_[port_index];
  if (port.transmit_at != now_) return events_.pop();  // an earlier one has replaced it
  Ticks again = port.free_at;                          // later than now if a PFC frame was sent before
  if (port.free_at <= now_) {
    port.transmit_at = no_time;
    again = transmit(port_index);
  }
  // Events pushed meanwhile are later than now, so this event is still the top.
  port.transmit_at = again;
  if (again == no_time)
    events_.pop();
  else
    events_.replace_top(PortEvents::key(again, transmit_source(port_index)));
}

// The port is free: sends the next packet. Returns when to look again; no_time: at the next arrival.
Ticks Simulation::transmit(std::uint32_t port_index) {
  Port& port = ports_[port_index];
  if (!port.up) return no_time;
  if (port.nic != none) return transmit_from_host(port_index);
  const unsigned ready = port.waiting & ~port.paused;
  if (ready == 0) return no_time;
  forward(port_index, ready);
  return (port.waiting & ~port.paused) != 0 ? port.free_at : no_time;
}

// Sends the next packet of the queues in `ready` and frees its cells.
void Simulation::forward(std::uint32_t port_index, unsigned ready) {
  Port& port = ports_[port_index];
  const unsigned priority = pick(port, std::span(&queues_[at(port_index, 0)], priorities), packets_, ready);
  Queue& queue = queues_[at(port_index, priority)];
  const std::uint32_t index = take_first(packets_, queue);
  Packet& packet = packets_[index];
  queue.bytes -= packet.bytes;
  queue.cells -= packet.cells;
  ++queue.sent_packets;
  queue.sent_bytes += packet.bytes;
  if (queue.head == none) {
    port.waiting &= ~(1u << priority);
    queue.deficit = 0;
  }
  if (port.nic == none) {
    PriorityGroup& group = groups_[at(packet.ingress, priority)];
    SharedPool& pool = pools_[port.node];
    release(pool, group, packet.cells);
    if (group.paused && may_send_xon(pool, group)) resume_peer(packet.ingress, priority);
  }
  put_on_wire(port, port_index, index);
}

void Simulation::put_on_wire(Port& port, std::uint32_t port_index, std::uint32_t index) {
  Packet& packet = packets_[index];
  if (routes_stay_ && !port.peer_is_host) {
    const Path& path = paths_[2 * std::size_t{packet.flow} + (packet.kind != data_kind)];
    packet.out = packet.hop < Path::most ? path.ports[packet.hop] : next_hop(port.peer_node, packet);
    if (packet.hop < Path::most) ++packet.hop;
  }
  const Ticks frame = Ticks{packet.bytes} * port.ticks_per_byte;
  // A PFC frame that resume_peer has just sent through this port goes first.
  const Ticks begin = std::max(now_, port.free_at);
  port.free_at = begin + frame + Ticks{transport_.gap_bytes} * port.ticks_per_byte;
  const Ticks arrival = begin + frame + port.latency;
  packets_.arrival(index) = arrival;
  packets_.next(index) = none;
  if (port.wire_head == none) {
    port.wire_head = index;
    events_.push(PortEvents::key(arrival, arrival_source(port_index)));
  } else {
    packets_.next(port.wire_tail) = index;
  }
  port.wire_tail = index;
}

}  // namespace weir::fabric::sim
