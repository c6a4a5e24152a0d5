// Which arrived packets may lie in their NIC until its process runs for another reason: those that change
// nothing but memory which nobody looks at meanwhile. They are most packets of long messages, and every grant
// that they do not need is saved.
//
//   may wait      a WRITE or SEND of a connection, but not the packet that completes a receive or takes one;
//                 it asks for no acknowledgement, carries no congestion mark, and is the next one of its
//                 queue pair, so that a responder executes it and answers nothing
//   a WRITE's     first packet may wait once a packet of the same key and memory was taken: before, the
//                 responder might refuse it
//
// A key that the program withdraws in the middle is refused when the next packet is given, at the latest the
// one that asks for an acknowledgement.
//
// Pure, no I/O. Packets are passed in order of arrival. Costs: O(1) a packet. Memory: one entry for each
// queue pair that has received requests, of which a NIC has 16,384.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace weir::twin {

class DeliveryRule {
 public:
  // `bytes`: from the BTH, for a queue pair of that process.
  bool may_wait(std::uint32_t process, std::span<const std::byte> bytes, bool marked);
  void forget(std::uint32_t process);

 private:
  struct Connection {
    std::uint32_t next = 0;  // behind the newest packet
    bool known = false;
    // Memory that WRITEs were let into.
    std::uint32_t rkey = 0;
    std::uint64_t from = 0, to = 0;
  };
  static bool lets_into(Connection& connection, std::span<const std::byte> reth);

  std::unordered_map<std::uint64_t, Connection> connections_;  // by process and queue pair number
};

}  // namespace weir::twin
