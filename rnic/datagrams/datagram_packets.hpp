// One queue pair's datagrams to other hosts and other users, each in one packet. Datagrams executed one after
// the other for the same destination leave in one batch.
//
// Used under the queue pair's send lock, in one thread from add() to send(). Nothing is acknowledged: a
// datagram is complete once its bytes are copied.
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

  // False: its payload cannot be read, and nothing of it is sent. May first send what the batch holds.
  // `process`: as of PacketRoute.
  bool add(const SendWqe&, std::uint32_t qkey, std::uint64_t process, const Gather& payload);
  void send();

 private:
  void go_to(const DatagramPath&, std::uint64_t process);

  HostPort& host_;
  const Qpn own_;
  Grh grh_{};  // of the destination of the two below
  PacketRoute route_;
  std::optional<wire::IcrcRoute> icrc_;
  std::optional<PacketBatch> batch_;
  std::uint32_t psn_ = 0;  // of the next datagram; receivers ignore it
};

}  // namespace weir::rnic
