#include "twin/live_network.hpp"

#include <algorithm>

#include "fabric/sim/random.hpp"
#include "twin/schedule.hpp"
#include "wire/opcodes.hpp"

namespace weir::twin {

using link::fabric::Address;
using link::fabric::no_time;
using link::fabric::PacketRecord;
using link::fabric::read_once;

namespace {

constexpr std::uint32_t nobody = ~std::uint32_t{0};
constexpr unsigned qp_index_bits = 14;  // of a queue pair number; above them is the slot of its process
constexpr std::uint32_t management_qpn = 1, qpn_mask = 0xffffff;
constexpr std::uint32_t ethernet_bytes = 14, fcs_bytes = 4, udp_bytes = 8, ipv4_bytes = 20, ipv6_bytes = 40;
constexpr std::uint32_t shortest_frame = 64, shortest_bth = 16;
constexpr std::uint8_t ecn_mask = 3, congestion_experienced = 3;
// No packet is given to a port later than this, whatever a program writes.
constexpr Ticks latest = static_cast<Ticks>(fabric::sim::longest_run_ns) * fabric::sim::ticks_per_ns;

std::uint32_t destination_of(std::span<const std::byte> packet) {
  return std::to_integer<std::uint32_t>(packet[5]) << 16 | std::to_integer<std::uint32_t>(packet[6]) << 8 |
         std::to_integer<std::uint32_t>(packet[7]);
}

fabric::sim::LivePacket::Kind kind_of(std::byte opcode) {
  using Kind = fabric::sim::LivePacket::Kind;
  if (std::to_integer<std::uint8_t>(opcode) == wire::congestion_notification) return Kind::notification;
  const auto operation = static_cast<wire::Operation>(std::to_integer<unsigned>(opcode) & 31);
  const bool answers =
      operation == wire::Operation::acknowledge || operation == wire::Operation::atomic_acknowledge;
  return answers ? Kind::acknowledgement : Kind::data;
}

bool is_ipv4(const Address& address) {
  return std::all_of(address.begin(), address.begin() + 10, [](auto byte) { return byte == 0; }) &&
         address[10] == 0xff && address[11] == 0xff;
}

std::uint32_t frame_bytes(const PacketRecord& packet) {
  const std::uint32_t ip = is_ipv4(packet.destination) ? ipv4_bytes : ipv6_bytes;
  return std::max(shortest_frame, ethernet_bytes + ip + udp_bytes + packet.bytes + fcs_bytes);
}

}  // namespace

LiveNetwork::LiveNetwork(link::fabric::Arena& arena, fabric::sim::Simulation& simulation,
                         const Scenario& scenario, std::vector<Address> addresses, std::uint64_t seed)
    : arena_(arena),
      simulation_(simulation),
      scenario_(scenario),
      addresses_(std::move(addresses)),
      seed_(seed),
      provided_(link::fabric::outbox_packets, link::fabric::no_slot),
      in_flight_(link::fabric::slot_count),
      unread_(link::fabric::max_processes),
      read_(link::fabric::max_processes),
      written_(link::fabric::max_processes),
      held_back_(link::fabric::max_processes),
      losses_(fabric::sim::mix(seed ^ 0x6c6f7373)) {
  for (std::uint32_t i = link::fabric::slot_count; i-- > 0;) free_slots_.push_back(i);
  simulation_.carry(*this);
  provide_slots(link::fabric::outbox_packets);
}

// The running program writes into slots that it was given, so nothing of what it leaves behind, should it be
// killed, says which slots are free.
void LiveNetwork::provide_slots(std::uint32_t places) {
  for (std::uint32_t i = 0; i < places; ++i) {
    if (provided_[i] == link::fabric::no_slot && !free_slots_.empty()) {
      provided_[i] = free_slots_.back();
      free_slots_.pop_back();
    }
    arena_.outbox[i].slot = provided_[i];
  }
}

std::uint32_t LiveNetwork::host_with(const Address& address) const {
  const auto found = std::ranges::find(addresses_, address);
  return found == addresses_.end() ? nobody : static_cast<std::uint32_t>(found - addresses_.begin());
}

std::uint32_t LiveNetwork::process_with(std::uint32_t host, std::uint32_t qpn) const {
  const std::uint32_t used = std::min(arena_.processes_used.load(), link::fabric::max_processes);
  for (std::uint32_t i = 0; i < used; ++i) {
    const auto& process = arena_.processes[i];
    const std::uint32_t slot = read_once(process.nic_slot);
    if (process.pid.load() == 0 || read_once(process.host) != host || slot == 0) continue;
    if (qpn == management_qpn || slot == qpn >> qp_index_bits) return i;
  }
  return nobody;
}

void LiveNetwork::come(Ticks at, std::uint32_t slot, bool arriving) {
  coming_.push({at, order_++, slot, arriving});
}

void LiveNetwork::collect(std::uint32_t process) {
  const std::uint32_t head = read_once(arena_.processes[process].inbox_head);
  auto& unread = unread_[process];
  while (read_[process] != head && !unread.empty()) {
    free_slots_.push_back(unread.front());
    unread.pop_front();
    ++read_[process];
  }
  if (unread.empty()) held_back_[process] = false;
  const std::uint32_t used = std::min(read_once(arena_.outbox_used), link::fabric::outbox_packets);
  for (std::uint32_t i = 0; i < used; ++i) {
    take(arena_.outbox[i], provided_[i]);
    provided_[i] = link::fabric::no_slot;
  }
  arena_.outbox_used = 0;
  unfilled_ = std::max(unfilled_, used);
  if (unfilled_ != 0) provide_slots(unfilled_);
  if (!free_slots_.empty()) unfilled_ = 0;
}

void LiveNetwork::take(const PacketRecord& given, std::uint32_t slot) {
  InFlight& packet = in_flight_[slot];
  packet.record = given;
  PacketRecord& record = packet.record;
  record.slot = slot;
  record.bytes = static_cast<std::uint16_t>(std::min<std::uint32_t>(record.bytes, link::fabric::slot_bytes));
  record.time = std::clamp(record.time, now_, latest);
  packet.marked = false;
  packet.source = host_with(record.source);
  packet.destination = host_with(record.destination);
  ++counts_.sent;
  if (packet.source == nobody || packet.destination == nobody || record.bytes < shortest_bth) {
    ++counts_.nowhere;
    free_slots_.push_back(slot);
    return;
  }
  // A NIC returns what is for itself.
  const bool loop = packet.source == packet.destination;
  if (loop && watcher_) watcher_(record.time, packet.source, false, record);
  come(record.time + scenario_.nic.transmit + (loop ? scenario_.nic.receive : 0), slot, loop);
}

void LiveNetwork::inject(std::uint32_t slot, Ticks at) {
  InFlight& packet = in_flight_[slot];
  PacketRecord& record = packet.record;
  record.time = at;
  if (watcher_) watcher_(at, packet.source, false, record);
  const auto bytes = std::span<const std::byte>(arena_.slots[slot]);
  const std::uint32_t destination_qp = destination_of(bytes);
  const std::uint32_t length = frame_bytes(record);
  counts_.bytes += length;
  fabric::sim::LivePacket live;
  live.name = slot;
  live.source = packet.source;
  live.destination = packet.destination;
  live.bytes = static_cast<std::uint16_t>(length);
  // Queue pairs take different ways, as with the source ports that rdma-core computes from their numbers.
  live.hash = static_cast<std::uint16_t>(
      fabric::sim::mix(seed_ ^ (std::uint64_t{packet.source} << 44 | std::uint64_t{destination_qp} << 20 |
                                packet.destination)) >>
      52);
  live.priority = scenario_.network.network->classes.dscp_to_priority[record.traffic_class >> 2];
  live.ecn_capable = (record.traffic_class & ecn_mask) != 0;
  live.kind = kind_of(bytes.front());
  live.queue_pair = live.kind == fabric::sim::LivePacket::Kind::notification ? destination_qp
                                                                             : record.queue_pair & qpn_mask;
  simulation_.send_live(live, at);
}

void LiveNetwork::leaves(Ticks at, std::uint32_t port, std::uint32_t slot, bool marked) {
  in_flight_[slot].port = port;
  if (port_watcher_) port_watcher_(port, at, in_flight_[slot].record, marked);
}

bool LiveNetwork::is_lost(std::uint32_t host, Ticks at) {
  for (const Loss& loss : scenario_.losses) {
    if (loss.host != host || at < loss.from || at >= loss.until || losses_.unit() >= loss.rate) continue;
    ++counts_.lost_on_purpose;
    return true;
  }
  return false;
}

void LiveNetwork::arrived(Ticks at, std::uint32_t slot, bool marked) {
  InFlight& packet = in_flight_[slot];
  packet.marked = marked;
  if (port_watcher_) port_watcher_(simulation_.fabric().ports[packet.port].peer, at, packet.record, marked);
  if (!scenario_.losses.empty() && (is_lost(packet.source, at) || is_lost(packet.destination, at)))
    return lost(at, slot);
  counts_.marked += marked;
  come(at + scenario_.nic.receive, slot, true);
}

void LiveNetwork::lost(Ticks, std::uint32_t slot) {
  ++counts_.lost;
  free_slots_.push_back(slot);
}

// A thread that spins on memory would see it at once, and without a thread of the NIC nobody could take it
// before another does.
bool LiveNetwork::may_wait(std::uint32_t process, const InFlight& packet, std::uint32_t slot) {
  constexpr std::size_t max_held_back = 512;
  const bool silent =
      rule_.may_wait(process, std::span(arena_.slots[slot]).first(packet.record.bytes), packet.marked);
  return silent && scenario_.nic.holds_back && unread_[process].size() < max_held_back &&
         can_take_later(arena_, process);
}

// A congestion notification to which the simulated port has reacted, per queue pair, as adapters' hardware
// does. The NIC's own reaction, by the window that it shares among queue pairs, would come on top.
bool LiveNetwork::is_obeyed_by_port(std::uint32_t slot) const {
  return simulation_.experiment().transport.control == fabric::sim::CongestionControl::dcqcn &&
         kind_of(arena_.slots[slot].front()) == fabric::sim::LivePacket::Kind::notification;
}

// True: a thread was woken.
bool LiveNetwork::deliver(std::uint32_t slot, Ticks at) {
  InFlight& packet = in_flight_[slot];
  PacketRecord& record = packet.record;
  record.time = at;
  if (packet.marked)
    record.traffic_class = static_cast<std::uint8_t>(record.traffic_class | congestion_experienced);
  if (watcher_) watcher_(at, packet.destination, true, record);
  if (is_obeyed_by_port(slot)) {
    ++counts_.notifications;
    free_slots_.push_back(slot);
    return false;
  }
  const std::uint32_t qpn = destination_of(arena_.slots[slot]);
  const std::uint32_t to = process_with(packet.destination, qpn);
  if (to == nobody || unread_[to].size() >= link::fabric::inbox_packets) {
    ++(to == nobody ? counts_.nowhere : counts_.refused);
    free_slots_.push_back(slot);
    return false;
  }
  auto& process = arena_.processes[to];
  if (unread_[to].empty()) read_[to] = process.inbox_head = written_[to];
  process.inbox[written_[to] % link::fabric::inbox_packets] = record;
  process.inbox_tail = ++written_[to];
  unread_[to].push_back(slot);
  ++counts_.delivered;
  if (may_wait(to, packet, slot)) {
    held_back_[to] = true;
    return false;
  }
  wake_for_packets(arena_, to, at);
  return true;
}

void LiveNetwork::process_ended(std::uint32_t process) {
  for (const std::uint32_t slot : unread_[process]) free_slots_.push_back(slot);
  unread_[process].clear();
  held_back_[process] = false;
  rule_.forget(process);
  auto& record = arena_.processes[process];
  read_[process] = record.inbox_head = record.inbox_tail = written_[process];
}

Ticks LiveNetwork::next_time() {
  const Ticks own = coming_.empty() ? no_time : coming_.top().at;
  return std::min(own, simulation_.next_time());
}

bool LiveNetwork::advance() {
  const Ticks own = coming_.empty() ? no_time : coming_.top().at;
  if (const Ticks network = simulation_.next_time(); network < own) {
    now_ = network;
    simulation_.run_some(1, network);
    return false;
  }
  const Coming first = coming_.top();
  coming_.pop();
  now_ = first.at;
  if (first.arriving) return deliver(first.slot, first.at);
  inject(first.slot, first.at);
  return false;
}

}  // namespace weir::twin
