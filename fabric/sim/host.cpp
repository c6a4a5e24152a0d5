// The two ends of a flow: the sending NIC's scheduler over its queue pairs, and a receiver's responses.
// rnic/congestion has the rules of the protocol; this file decides when to apply them.
#include <algorithm>
#include <cmath>

#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {

using rnic::congestion::Arrival;

constexpr int most_hops = 64;

namespace {

rnic::congestion::AcknowledgedRate acknowledged_rate(CongestionControl control, double line_rate) {
  using rnic::congestion::AcknowledgedRate;
  if (control == CongestionControl::dctcp) return AcknowledgedRate(rnic::congestion::Dctcp(line_rate));
  if (control == CongestionControl::hpcc) return AcknowledgedRate(rnic::congestion::Hpcc(line_rate));
  return AcknowledgedRate(rnic::congestion::Swift(line_rate));
}

}  // namespace

void Simulation::start_due_flows() {
  while (started_ < start_order_.size() && net_.run.flows[start_order_[started_]].start <= net_.now)
    start_flow(start_order_[started_++]);
  next_start_ = started_ < start_order_.size() ? net_.run.flows[start_order_[started_]].start : no_time;
}

void Simulation::start_followers(std::uint32_t of) {
  if (order_.empty()) return;
  order_.over(
      of, [this](std::uint32_t flow) { start_flow(flow); },
      [this](std::uint32_t pause, Ticks length) {
        net_.rare.push(net_.now + length, RareKind::pause, pause);
      });
}

void Simulation::start_flow(std::uint32_t id) {
  const FlowSpec& spec = net_.run.flows[id];
  std::uint32_t slot = static_cast<std::uint32_t>(flows_.size());
  if (free_slots_.empty()) {
    flows_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  Flow& flow = flows_[slot] = Flow{};
  const std::uint32_t mtu = net_.transport.mtu_bytes;
  const std::uint64_t bytes = std::max<std::uint64_t>(spec.bytes, 1);
  flow.id = id;
  flow.packets = static_cast<std::uint32_t>((bytes + mtu - 1) / mtu);
  flow.last_bytes = static_cast<std::uint32_t>(bytes - std::uint64_t{flow.packets - 1} * mtu);
  flow.source = spec.source;
  flow.destination = spec.destination;
  flow.priority = spec.priority;
  flow.hash = static_cast<std::uint32_t>(mix(net_.run.seed ^ (std::uint64_t{id} << 20)) >> 52);
  flow.progress = net_.now;
  flow.nic = choose_nic(flow);
  const std::uint32_t port = nics_[flow.nic].port;
  const double line_rate = nics_[flow.nic].line_rate;
  flow.rate_bps = line_rate;
  flow.reaction = rnic::congestion::ReactionPoint(line_rate);
  if (by_acknowledgements(net_.transport.control)) {
    const auto control = acknowledged_rate(net_.transport.control, line_rate);
    acknowledged_rates_.resize(flows_.size(), control);
    acknowledged_rates_[slot] = control;
  }
  results_[id].started = net_.now;
  results_[id].ideal = ideal_time(spec, flow.hash, port);
  if (net_.routes_stay) {
    paths_.resize(2 * flows_.size());
    Packet probe{};
    probe.hash = flow.hash;
    probe.destination = flow.destination;
    find_path(paths_[2 * std::size_t{slot}], probe, port);
    probe.destination = flow.source;
    find_path(paths_[2 * std::size_t{slot} + 1], probe, arrival_port(flow, port));
  }
  ++alive_;
  net_.rare.push(net_.now + net_.transport.retransmission_timeout, RareKind::retransmission, slot, id);
  make_ready(slot);
}

// On a host with several links, a flow's hash chooses among the links nearest
// to its destination.
std::uint32_t Simulation::choose_nic(const Flow& flow) const {
  const auto& nics = nics_of_[flow.source];
  if (nics.size() == 1) return nics.front();
  Packet probe{};
  probe.destination = flow.destination;
  probe.hash = flow.hash;
  const std::uint32_t port = next_hop(net_.fabric.hosts[flow.source], probe);
  return port == no_port ? nics.front() : net_.ports[port].nic;
}

// The port where its data arrive at the destination, and where responses therefore leave.
std::uint32_t Simulation::arrival_port(const Flow& flow, std::uint32_t from_port) const {
  const auto& nics = nics_of_[flow.destination];
  const std::uint32_t otherwise = nics_[nics.front()].port;
  if (nics.size() == 1) return otherwise;
  Packet probe{};
  probe.destination = flow.destination;
  probe.hash = flow.hash;
  std::uint32_t out = from_port;
  for (int hops = 0; out != no_port && hops < most_hops; ++hops) {
    if (net_.ports[out].peer_is_host) return net_.ports[out].peer;
    out = next_hop(net_.ports[out].peer_node, probe);
  }
  return otherwise;
}

// Alone on its path: all of it through the slowest link, one packet through each other link.
Ticks Simulation::ideal_time(const FlowSpec& flow, std::uint32_t hash, std::uint32_t from_port) const {
  Packet probe{};
  probe.destination = flow.destination;
  probe.hash = hash;
  const std::uint64_t bytes = std::max<std::uint64_t>(flow.bytes, 1);
  const std::uint64_t mtu = net_.transport.mtu_bytes;
  const std::uint64_t packets = (bytes + mtu - 1) / mtu;
  const std::uint64_t overhead = net_.transport.header_bytes + net_.transport.gap_bytes;
  const std::uint64_t all = bytes + packets * overhead;
  const std::uint64_t one = std::min(bytes, mtu) + overhead;
  Ticks latency = 0, slowest = 0, each = 0;
  std::uint32_t port = from_port;
  for (int hops = 0; port != no_port && hops < most_hops; ++hops) {
    const Port& hop = net_.ports[port];
    latency += hop.latency;
    each += one * hop.ticks_per_byte;
    slowest = std::max<Ticks>(slowest, hop.ticks_per_byte);
    if (net_.ports[hop.peer].nic != none) break;
    port = next_hop(net_.ports[hop.peer].node, probe);
  }
  // The gap after the last frame delays nothing.
  return latency + each + (all - one) * slowest - Ticks{net_.transport.gap_bytes} * slowest;
}

// Appends to its host's list of flows of this priority; hosts serve queue pairs in turn, a packet each.
void Simulation::append_ready(Nic& nic, std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.place = Place::ready;
  flow.next_ready = none;
  if (nic.ready_head[flow.priority] == none)
    nic.ready_head[flow.priority] = slot;
  else
    flows_[nic.ready_tail[flow.priority]].next_ready = slot;
  nic.ready_tail[flow.priority] = slot;
  nic.waiting |= 1u << flow.priority;
}

void Simulation::make_ready(std::uint32_t slot) {
  if (flows_[slot].place != Place::parked) return;
  Nic& nic = nics_[flows_[slot].nic];
  append_ready(nic, slot);
  kick(nic.port);
}

// The last packet of a window may reach beyond it, as in HPCC's simulator: a window of less than a packet
// lets one go.
std::uint32_t Simulation::window_packets(double line_rate) const {
  const auto& transport = net_.transport;
  double bytes = transport.window_bytes != 0 ? static_cast<double>(transport.window_bytes) : 0;
  if (transport.window_time != 0) {
    const double product = to_s(transport.window_time) * line_rate / 8;
    bytes = bytes == 0 ? product : std::min(bytes, product);
  }
  if (bytes == 0) return 0;
  return std::max(1u, static_cast<std::uint32_t>(std::ceil(bytes / transport.mtu_bytes)));
}

bool Simulation::window_open(const Flow& flow, const Nic& nic) const {
  if (nic.window == 0) return true;
  if (!net_.transport.window_by_rate) return flow.sender.in_flight() < nic.window;
  return flow.sender.in_flight() < std::max(1.0, nic.window * flow.rate_bps / nic.line_rate);
}

// Flows whose rate allows another packet join their list again.
void Simulation::release_paced(Nic& nic) {
  while (!nic.paced.empty() && nic.paced.front().first <= net_.now) {
    const std::uint32_t slot = nic.paced.front().second;
    std::pop_heap(nic.paced.begin(), nic.paced.end(), std::greater<>());
    nic.paced.pop_back();
    append_ready(nic, slot);
  }
}

Ticks Simulation::transmit_from_host(std::uint32_t port_index) {
  Port& port = net_.ports[port_index];
  Nic& nic = nics_[port.nic];
  release_paced(nic);
  if (const unsigned control = port.waiting & ~port.paused) {
    forward(port_index, control);
  } else if (const unsigned flows = nic.waiting & ~port.paused) {
    while (((flows >> nic.turn) & 1) == 0) nic.turn = (nic.turn + 1) % priorities;
    const unsigned priority = nic.turn;
    nic.turn = (nic.turn + 1) % priorities;
    const std::uint32_t slot = nic.ready_head[priority];
    nic.ready_head[priority] = flows_[slot].next_ready;
    if (nic.ready_head[priority] == none) nic.waiting &= ~(1u << priority);
    send_packet(port_index, nic, slot);
  }
  if (((port.waiting | nic.waiting) & ~port.paused) != 0) return std::max(port.free_at, net_.now + 1);
  return nic.paced.empty() ? no_time : std::max(port.free_at, nic.paced.front().first);
}

void Simulation::send_packet(std::uint32_t port_index, Nic& nic, std::uint32_t slot) {
  if (flows_[slot].live) return send_live_packet(port_index, nic, slot);
  Flow& flow = flows_[slot];
  Port& port = net_.ports[port_index];
  flow.place = Place::parked;
  if (flow.sender.next() >= flow.packets) return free_if_over(slot);  // acknowledged since it became ready
  const std::uint32_t number = flow.sender.next();
  if (flow.sender.in_flight() == 0) flow.progress = net_.now;
  const std::uint32_t index = net_.packets.take();
  Packet& packet = net_.packets[index];
  packet = Packet{};
  packet.flow = slot;
  packet.psn = flow.sender.psn();
  packet.priority = flow.priority;
  packet.kind = static_cast<unsigned>(PacketKind::data);
  packet.destination = flow.destination;
  packet.hash = flow.hash;
  packet.bytes = static_cast<std::uint16_t>(payload_of(flow, number) + net_.transport.header_bytes);
  ++flow.on_wires;
  if (flow.sender.on_sent()) {
    ++net_.totals.retransmitted;
    if (number < flow.receiver.delivered() || number >= flow.missed_below) ++net_.totals.spurious;
    ++results_[flow.id].retransmitted;
  }
  // The sender of a closed window waits for an acknowledgement (AckReq in the BTH). A window that follows
  // the rate may close behind any packet.
  packet.ack_request = number + 1 == flow.packets ||
                       (nic.window != 0 && (net_.transport.window_by_rate || !window_open(flow, nic)));
  Queue& counted = net_.queues[at(port_index, flow.priority)];
  ++counted.sent_packets;
  counted.sent_bytes += packet.bytes;
  const std::uint64_t frame = std::uint64_t{packet.bytes} + net_.transport.gap_bytes;
  if (by_acknowledgements(net_.transport.control)) {
    net_.packets.report(index) = PathReport{};
    net_.packets.report(index).sent = net_.now;
  }
  put_on_wire(port, port_index, index);

  const double line_rate = nic.line_rate;
  advance_rate(flow, frame, line_rate);
  if (flow.sender.next() >= flow.packets || !flow.sender.window_open() || !window_open(flow, nic))
    return;  // an acknowledgement will make it ready again
  if (flow.rate_bps < line_rate) return pace(nic, slot, net_.now + wait_after(frame, flow.rate_bps));
  append_ready(nic, slot);
}

void Simulation::advance_rate(Flow& flow, std::uint64_t frame, double line_rate) {
  if (!flow.reaction.limited()) return;
  flow.reaction.advance(net_.transport.dcqcn_parameters, net_.now, line_rate);
  flow.reaction.on_sent(net_.transport.dcqcn_parameters, frame, line_rate);
  flow.rate_bps = flow.reaction.rate();
}

void Simulation::pace(Nic& nic, std::uint32_t slot, Ticks until) {
  flows_[slot].place = Place::paced;
  nic.paced.emplace_back(until, slot);
  std::push_heap(nic.paced.begin(), nic.paced.end(), std::greater<>());
}

void Simulation::slow_down_by_notification(Flow& flow) {
  flow.reaction.on_cnp(net_.transport.dcqcn_parameters, net_.now, nics_[flow.nic].line_rate);
  flow.rate_bps = flow.reaction.rate();
}

void Simulation::free_if_over(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.on_wires != 0 || !flow.acknowledged || flow.place != Place::parked || flow.id == none) return;
  flow.id = none;
  free_slots_.push_back(slot);
}

void Simulation::packet_gone(std::uint32_t slot) {
  --flows_[slot].on_wires;
  free_if_over(slot);
}

void Simulation::receive_at_host(std::uint32_t port, std::uint32_t index) {
  const Packet packet = net_.packets[index];
  if (packet.kind == live_kind) {
    if (packet.psn != 0) slow_down_by_notification(flows_[packet.psn - 1]);
    ++net_.totals.live_packets;
    net_.totals.live_bytes += packet.bytes;
    return live_.arrived(index);
  }
  if (by_acknowledgements(net_.transport.control)) arriving_ = net_.packets.report(index);
  net_.packets.give_back(index);
  if (packet.kind == static_cast<unsigned>(PacketKind::data))
    receive_data(port, packet.flow, packet);
  else
    receive_control(packet.flow, packet);
  packet_gone(packet.flow);
}

void Simulation::receive_data(std::uint32_t port, std::uint32_t slot, const Packet& packet) {
  Flow& flow = flows_[slot];
  if (packet.marked && net_.transport.control == CongestionControl::dcqcn &&
      flow.notification.on_marked(net_.transport.dcqcn_parameters, net_.now)) {
    ++net_.totals.cnps;
    ++results_[flow.id].cnps;
    send_control(port, slot, PacketKind::cnp, 0);
  }
  switch (flow.receiver.on_packet(packet.psn)) {
    case Arrival::deliver:
      break;
    case Arrival::duplicate:
      return send_control(port, slot, PacketKind::ack, flow.receiver.expected_psn(), packet.marked);
    case Arrival::nak:
      flow.miss(packet.psn);
      return send_control(port, slot, PacketKind::nak, flow.receiver.expected_psn(), packet.marked);
    case Arrival::ignore:
      return flow.miss(packet.psn);
  }
  net_.totals.delivered_bytes += packet.bytes - net_.transport.header_bytes;
  if (++flow.not_acknowledged >= net_.transport.ack_every || packet.ack_request) {
    flow.not_acknowledged = 0;
    send_control(port, slot, PacketKind::ack, flow.receiver.expected_psn(), packet.marked);
  }
  if (flow.receiver.delivered() < flow.packets) return;
  flow.arrived = true;
  results_[flow.id].arrived = net_.now;
  ++net_.totals.finished;
  --alive_;
  start_followers(flow.id);  // moves the slots: `flow` is now invalid
}

void Simulation::send_control(std::uint32_t port_index, std::uint32_t slot, PacketKind kind,
                              std::uint32_t psn, bool marked) {
  Flow& flow = flows_[slot];
  const std::uint32_t index = net_.packets.take();
  Packet& packet = net_.packets[index];
  packet = Packet{};
  packet.flow = slot;
  packet.psn = psn & rnic::congestion::psn_mask;
  packet.priority = net_.transport.control_priority;
  packet.kind = static_cast<unsigned>(kind);
  packet.marked = marked && by_acknowledgements(net_.transport.control);
  if (by_acknowledgements(net_.transport.control)) net_.packets.report(index) = arriving_;
  packet.destination = flow.source;
  packet.hash = flow.hash;
  packet.bytes = static_cast<std::uint16_t>(kind == PacketKind::cnp ? net_.transport.cnp_bytes
                                                                    : net_.transport.ack_bytes);
  ++flow.on_wires;
  Queue& queue = net_.queues[at(port_index, packet.priority)];
  append(net_.packets, queue, index);
  queue.bytes += packet.bytes;
  queue.bytes_most = std::max(queue.bytes_most, queue.bytes);
  net_.ports[port_index].waiting |= 1u << packet.priority;
  kick(port_index);
}

void Simulation::receive_control(std::uint32_t slot, const Packet& packet) {
  Flow& flow = flows_[slot];
  const auto kind = static_cast<PacketKind>(packet.kind);
  if (flow.acknowledged) return;
  if (kind == PacketKind::cnp) {
    slow_down_by_notification(flow);
    return;
  }
  const std::uint32_t news =
      kind == PacketKind::ack ? flow.sender.on_ack(packet.psn) : flow.sender.on_nak(packet.psn);
  if (news != 0) flow.progress = net_.now;
  if (by_acknowledgements(net_.transport.control)) update_rate(slot, packet);
  if (flow.sender.acknowledged() == flow.packets) {
    flow.acknowledged = true;
    return;
  }
  if (flow.sender.next() < flow.packets && window_open(flow, nics_[flow.nic])) make_ready(slot);
}

// An acknowledgement sets the rate.
void Simulation::update_rate(std::uint32_t slot, const Packet& packet) {
  Flow& flow = flows_[slot];
  const auto& transport = net_.transport;
  rnic::congestion::PathFacts path;
  path.line_rate = nics_[flow.nic].line_rate;
  path.base_rtt = std::max<Ticks>(transport.base_rtt, 1);
  path.packet_bits = 8.0 * (transport.mtu_bytes + transport.header_bytes + transport.gap_bytes);
  path.time_units_per_s = ticks_per_s;
  rnic::congestion::Feedback feedback;
  feedback.now = net_.now;
  feedback.round_trip = net_.now - arriving_.sent;
  feedback.acknowledged = flow.sender.acknowledged();
  feedback.next = flow.sender.next();
  feedback.marked = packet.marked;
  feedback.links = std::span(arriving_.readings).first(arriving_.links);
  acknowledged_rates_[slot].on_ack(transport.acknowledged, path, feedback);
  flow.rate_bps = acknowledged_rates_[slot].rate();
}

void Simulation::retransmission_timer(std::uint32_t slot, std::uint32_t id) {
  Flow& flow = flows_[slot];
  if (flow.id != id || flow.acknowledged) return;
  if (flow.progress + net_.transport.retransmission_timeout <= net_.now) {
    flow.progress = net_.now;
    if (flow.sender.in_flight() != 0) {
      flow.sender.on_timeout();
      make_ready(slot);
    }
  }
  net_.rare.push(flow.progress + net_.transport.retransmission_timeout, RareKind::retransmission, slot, id);
}

}  // namespace weir::fabric::sim
