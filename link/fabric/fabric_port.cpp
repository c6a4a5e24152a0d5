#include "link/fabric/fabric_port.hpp"

#include <dlfcn.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

namespace weir::link {
namespace {

constexpr std::size_t packets_at_once = 64;

const fabric::Inside* inside() {
  const auto found = reinterpret_cast<fabric::InsideFunction>(::dlsym(RTLD_DEFAULT, fabric::inside_name));
  return found != nullptr ? found() : nullptr;
}

}  // namespace

FabricPort* FabricPort::find() {
  static FabricPort* const made = [] {
    const fabric::Inside* const found = inside();
    return found != nullptr ? new FabricPort(*found) : nullptr;
  }();
  found_ = made;
  asked_.store(true, std::memory_order_release);
  return made;
}

// A child of fork has its parent's descriptor, which it must not share.
bool FabricPort::open(std::uint32_t slot, const void* owner) {
  UniqueFd made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made || owner_ == owner) return false;
  arrived_ = std::move(made);
  owner_ = owner;
  inside_.process->nic_slot = slot;
  return true;
}

void FabricPort::polled_in_vain(bool first) {
  first_ = first_ || first;
  if (!std::exchange(took_, false)) inside_.polled_in_vain(std::exchange(first_, false));
}

void FabricPort::watch() { inside_.watch_packets(arrived_.get()); }

void FabricPort::drain() {
  std::uint64_t count;
  [[maybe_unused]] const auto taken = ::read(arrived_.get(), &count, sizeof count);  // all of an eventfd's
}

void FabricPort::send(const FabricRoute& route, std::uint16_t source_port,
                      std::span<const std::byte> packet) {
  fabric::Arena& arena = *inside_.arena;
  if (packet.size() > fabric::slot_bytes) return;  // no network of ours carries it
  if (arena.outbox_used >= fabric::outbox_packets) inside_.flush();
  if (arena.outbox_used >= fabric::outbox_packets) return;
  fabric::PacketRecord& record = arena.outbox[arena.outbox_used];
  if (record.slot >= fabric::slot_count) return;  // the network holds all slots: lost, as at any full NIC
  std::memcpy(arena.slots[record.slot].data(), packet.data(), packet.size());
  record.bytes = static_cast<std::uint16_t>(packet.size());
  record.source_port = source_port;
  record.queue_pair = route.queue_pair;
  record.traffic_class = route.traffic_class;
  record.hop_limit = route.hop_limit;
  record.source = route.source;
  record.destination = route.destination;
  record.time = inside_.now();
  ++arena.outbox_used;
  inside_.worked();
}

bool FabricPort::holds_packets() const { return inside_.process->inbox_head != inside_.process->inbox_tail; }

void FabricPort::receive(const Sink& sink) {
  fabric::ProcessRecord& process = *inside_.process;
  std::array<FabricArrival, packets_at_once> arrivals;
  const std::uint32_t end = fabric::read_once(process.inbox_tail);
  if (end - process.inbox_head > fabric::inbox_packets) return;  // written over by another program
  while (process.inbox_head != end) {
    took_ = true;
    inside_.worked();
    std::size_t count = 0;
    for (std::uint32_t at = process.inbox_head; at != end && count < arrivals.size(); ++at) {
      const fabric::PacketRecord record = process.inbox[at % fabric::inbox_packets];
      if (record.slot >= fabric::slot_count || record.bytes > fabric::slot_bytes) return;
      arrivals[count++] = {.bytes = std::span(inside_.arena->slots[record.slot]).first(record.bytes),
                           .source = record.source,
                           .destination = record.destination,
                           .source_port = record.source_port,
                           .traffic_class = record.traffic_class,
                           .hop_limit = record.hop_limit};
    }
    sink({arrivals.data(), count});
    process.inbox_head += static_cast<std::uint32_t>(count);
  }
}

}  // namespace weir::link
