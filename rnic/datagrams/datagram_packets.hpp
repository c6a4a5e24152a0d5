// The datagrams of one queue pair that go to other hosts and other users, each in one packet: those that are
// executed one after the other for the same destination leave in one batch.
//
// Under the queue pair's send lock, in one thread from add() to send(). Nothing comes back: a datagram is
// complete once its bytes are copied.
#pragma once

#include <cstdint>
#include <optional>

#include "rnic/between_hosts/packet_batch.hpp"
#include "rnic/datagrams/grh.hpp"
#include "rnic/memory/gather.hpp"
#include "rnic/queue_pair/send_queue.hpp"

namespace weir::rnic {

class DatagramPackets {
 public:
  DatagramPackets(HostPort& host, Qpn own) : host_(host), own_(own) {}

  // False: its payload cannot be read, and nothing is sent of it. May send what is there before.
  // `process`: as of PacketRoute.
  bool add(const SendWqe&, std::uint32_t qkey, std::uint64_t process, const Gather& payload);
  void send();

 private:
  void go_to(const DatagramPath&, std::uint64_t process);

  HostPort& host_;
  const Qpn own_;
  Grh grh_{};  // of the destination that the two below are for
  PacketRoute route_;
  std::optional<wire::IcrcRoute> icrc_;
  std::optional<PacketBatch> batch_;
  std::uint32_t psn_ = 0;  // of the next; receivers do not look at it
};

}  // namespace weir::rnic
