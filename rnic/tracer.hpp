// An observer of every work request and completion: `weir trace` (verbs/trace).
//
// Without a tracer, a queue pair tests a null pointer once for each of these and goes on. Called in the
// working thread, under the queue pair's locks: nothing here may call back into the NIC or wait for it.
#pragma once

#include <cstdint>
#include <span>

#include "rnic/types.hpp"

namespace weir::rnic {

class QueuePair;
struct SendWqe;

// A packet sent to another host or received from one, BTH to ICRC.
struct WirePacket {
  std::span<const std::byte> bytes;
  Gid source{}, destination{};
  std::uint16_t source_port = 0;
  std::uint16_t likely_id = 0;  // of its IPv4 header; for a sent packet, the ID itself
  std::uint8_t traffic_class = 0, hop_limit = 0;
  Qpn own;  // our queue pair that sent it, or that it is for
};

class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual void posted(const QueuePair&, SendWqe&) = 0;
  // Executed, or given up; its memory still belongs to the NIC.
  virtual void finished(const QueuePair&, SendWqe&, WcStatus) = 0;
  enum class WaitsFor : std::uint8_t { receive, answer };
  virtual void parked(const QueuePair&, SendWqe&, WaitsFor, std::uint32_t rnr_timer) = 0;
  virtual void receive_posted(const QueuePair&, std::uint64_t wr_id, std::span<const Sge>) = 0;
  virtual void receive_posted(Qpn srq, std::uint64_t wr_id, std::span<const Sge>) = 0;
  virtual void polled(const WorkCompletion&) = 0;
  // Packets that the kernel accepted, and packets that arrived, whatever happens to them next.
  virtual void on_wire(std::span<const WirePacket>) = 0;
  // Reset, or destroyed: its number then starts anew.
  virtual void forgotten(const QueuePair&) = 0;
};

}  // namespace weir::rnic
