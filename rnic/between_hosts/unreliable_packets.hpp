// The messages of one unreliable connection to another host: cut into packets, sent and forgotten. Messages
// executed one after the other leave in one batch.
//
// Used under the queue pair's send lock, in one thread from add() to send(). A message is complete once its
// bytes are copied.
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

  // The number of packets the message takes. Nothing: its memory cannot be read, and the receiver drops what
  // was sent of it. May first send what the batch holds.
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
