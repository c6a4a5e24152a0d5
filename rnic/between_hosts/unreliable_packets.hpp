// The messages of one unreliable connection that go to another host: cut into packets, which are sent and
// forgotten. Those that are executed one after the other leave in one batch.
//
// Under the queue pair's send lock, in one thread from add() to send(). A message is complete once its bytes
// are copied.
#pragma once

#include <cstdint>
#include <optional>

#include "rnic/between_hosts/packet_batch.hpp"
#include "rnic/memory/gather.hpp"
#include "rnic/packet/psn.hpp"
#include "rnic/queue_pair/send_queue.hpp"

namespace weir::rnic {

class UnreliablePackets {
 public:
  // The first three outlive it.
  UnreliablePackets(HostPort& host, const PacketRoute& route, const wire::IcrcRoute& icrc, Qpn to,
                    std::uint32_t path_mtu, packet::Psn first)
      : host_(host), route_(route), icrc_(icrc), to_(to), path_mtu_(path_mtu), next_(first) {}

  // In how many packets it goes. Nothing: its memory cannot be read; what went of it nobody takes. May send
  // what is there before.
  std::optional<std::uint32_t> add(const SendWqe&, const Gather& payload);
  void send();

 private:
  HostPort& host_;
  const PacketRoute& route_;
  const wire::IcrcRoute& icrc_;
  const Qpn to_;
  const std::uint32_t path_mtu_;
  packet::Psn next_;
  std::optional<PacketBatch> batch_;
};

}  // namespace weir::rnic
