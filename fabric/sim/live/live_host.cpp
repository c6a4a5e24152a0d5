// The port of a running program's NIC: its queue pairs take turns with simulated flows, each as fast as its
// reaction point lets it.
#include <utility>

#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {

constexpr std::size_t max_live_flows = 1u << 16;

void Simulation::send_live(const LivePacket& packet, Ticks at) {
  net_.now = at;
  if (net_.run.sample_interval != 0 && !std::exchange(sample_ordered_, true)) samples_.order_next();
  const std::uint32_t index = live_.take(packet);
  if (packet.kind == LivePacket::Kind::data)
    if (const std::uint32_t slot = live_flow(packet); slot != none)
      return send_live_data(packet, index, slot);
  if (packet.kind == LivePacket::Kind::notification) ++net_.totals.cnps;
  if (packet.kind == LivePacket::Kind::notification && net_.transport.control == CongestionControl::dcqcn) {
    const std::uint32_t slot = live_.flow_of(packet.destination, packet.queue_pair);
    if (slot != none) net_.packets[index].psn = slot + 1;
  }
  const auto& nics = nics_of_[packet.source];
  std::uint32_t port = nics_[nics.front()].port;
  if (nics.size() > 1) {
    const std::uint32_t nearest = next_hop(net_.fabric.hosts[packet.source], net_.packets[index]);
    if (nearest != no_port) port = nearest;
  }
  live_.append(index, port);
  kick(port);
}

// Its flow's slot, made for its first packet; none: there are too many. It is never given back: a queue pair
// number that is used again has the rate of the one before.
std::uint32_t Simulation::live_flow(const LivePacket& packet) {
  std::uint32_t slot = live_.flow_of(packet.source, packet.queue_pair);
  if (slot != none || live_.flows() >= max_live_flows) return slot;
  slot = static_cast<std::uint32_t>(flows_.size());
  Flow& flow = flows_.emplace_back();
  flow.live = true;
  flow.source = packet.source;
  flow.destination = packet.destination;
  flow.hash = packet.hash;
  flow.nic = choose_nic(flow);
  flow.rate_bps = nics_[flow.nic].line_rate;
  flow.reaction = rnic::congestion::ReactionPoint(flow.rate_bps);
  if (net_.routes_stay) paths_.resize(2 * flows_.size());
  live_.has_flow(packet.source, packet.queue_pair, slot);
  return slot;
}

void Simulation::send_live_data(const LivePacket& packet, std::uint32_t index, std::uint32_t slot) {
  Flow& flow = flows_[slot];
  net_.packets.next(index) = none;
  if (flow.first_packet == none)
    flow.first_packet = index;
  else
    net_.packets.next(flow.last_packet) = index;
  flow.last_packet = index;
  if (flow.place != Place::parked) return;
  flow.priority = packet.priority & 7;
  if (flow.destination != packet.destination) {  // a queue pair of datagrams
    flow.destination = packet.destination;
    flow.hash = packet.hash;
    flow.nic = choose_nic(flow);
  }
  if (flow.allowed > net_.now) {
    Nic& nic = nics_[flow.nic];
    pace(nic, slot, flow.allowed);
    return want_transmit(nic.port, std::max(flow.allowed, net_.ports[nic.port].free_at));
  }
  make_ready(slot);
}

void Simulation::send_live_packet(std::uint32_t port_index, Nic& nic, std::uint32_t slot) {
  Flow& flow = flows_[slot];
  const std::uint32_t index = flow.first_packet;
  flow.first_packet = net_.packets.next(index);
  flow.place = Place::parked;
  const Packet& packet = net_.packets[index];
  Queue& counted = net_.queues[at(port_index, packet.priority)];
  ++counted.sent_packets;
  counted.sent_bytes += packet.bytes;
  const std::uint64_t frame = std::uint64_t{packet.bytes} + net_.transport.gap_bytes;
  put_on_wire(net_.ports[port_index], port_index, index);
  advance_rate(flow, frame, nic.line_rate);
  const bool limited = flow.rate_bps < nic.line_rate;
  flow.allowed = limited ? net_.now + wait_after(frame, flow.rate_bps) : 0;
  if (flow.first_packet == none) return;
  flow.priority = net_.packets[flow.first_packet].priority;
  if (limited) return pace(nic, slot, flow.allowed);
  append_ready(nic, slot);
}

}  // namespace weir::fabric::sim
