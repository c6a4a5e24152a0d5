#include "fabric/sim/live/live_packets.hpp"

#include <algorithm>

namespace weir::fabric::sim {

std::uint32_t LivePackets::take(const LivePacket& from) {
  const std::uint32_t index = net_.packets.take();
  Packet& packet = net_.packets[index];
  packet = Packet{};
  packet.kind = live_kind;
  packet.flow = from.name;
  packet.destination = from.destination;
  packet.hash = from.hash & 0xfff;
  packet.priority = from.priority & 7;
  packet.ecn_capable = from.ecn_capable;
  packet.bytes = from.bytes;
  return index;
}

void LivePackets::append(std::uint32_t index, std::uint32_t port) {
  const Packet& packet = net_.packets[index];
  Queue& queue = net_.queues[NetworkState::at(port, packet.priority)];
  sim::append(net_.packets, queue, index);
  queue.bytes += packet.bytes;
  queue.bytes_most = std::max(queue.bytes_most, queue.bytes);
  net_.ports[port].waiting |= 1u << packet.priority;
}

namespace {
std::uint64_t key_of(std::uint32_t host, std::uint32_t queue_pair) {
  return std::uint64_t{host} << 32 | queue_pair;
}
}  // namespace

std::uint32_t LivePackets::flow_of(std::uint32_t host, std::uint32_t queue_pair) const {
  const auto found = flows_.find(key_of(host, queue_pair));
  return found == flows_.end() ? none : found->second;
}

void LivePackets::has_flow(std::uint32_t host, std::uint32_t queue_pair, std::uint32_t slot) {
  flows_[key_of(host, queue_pair)] = slot;
}

void LivePackets::arrived(std::uint32_t index) {
  const Packet packet = net_.packets[index];
  net_.packets.give_back(index);
  ends_->arrived(net_.now, packet.flow, packet.marked);
}

void LivePackets::lost(std::uint32_t index) {
  const Packet packet = net_.packets[index];
  net_.packets.give_back(index);
  ends_->lost(net_.now, packet.flow);
}

}  // namespace weir::fabric::sim
