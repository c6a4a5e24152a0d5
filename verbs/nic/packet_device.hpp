// What carries a NIC's packets. PacketNetwork is one; one that stands in front of it (FaultyDevice) is
// another, so what it does costs nothing where it is not.
//
// Threading: all functions from any thread.
#pragma once

#include <span>

#include "rnic/peer.hpp"

namespace weir::verbs {

class PacketDevice {
 public:
  virtual ~PacketDevice() = default;
  // As rnic::HostPort's functions of these names.
  virtual void send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) = 0;
  virtual std::size_t packets_in_run(const rnic::PacketRoute& route) const = 0;
  virtual void receive(const rnic::HostPort::PacketSink& sink) = 0;
};

}  // namespace weir::verbs
