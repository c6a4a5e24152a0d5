// Packets for one destination, laid out back to back as the kernel takes them: runs of equal length (the last
// may be shorter), each packet with its ICRC.
//
// Payload is copied here once, by a copy that stops if the program's memory is gone; from here the kernel
// copies it on. One system call then carries dozens of packets. Short ones may wait for those of other queue
// pairs instead (departures.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rnic/between_hosts/departures.hpp"
#include "rnic/packet/outgoing.hpp"
#include "rnic/packet/run_length.hpp"
#include "rnic/peer.hpp"
#include "wire/icrc.hpp"

namespace weir::rnic {

class PacketBatch {
 public:
  // All outlive the batch. One batch at a time per thread. `longest_run`: packets in a run on that path; the
  // kernel may take fewer. `stage`: this thread's, if short packets may wait.
  PacketBatch(HostPort& host, const PacketRoute& route, const wire::IcrcRoute& icrc,
              std::size_t longest_run = packet::RunLength::longest, DepartureStage* stage = nullptr);
  PacketBatch(const PacketBatch&) = delete;
  PacketBatch& operator=(const PacketBatch&) = delete;

  // False: its payload cannot be read, and it is not in the batch. May first send what the batch holds.
  bool add(const packet::Outgoing& packet);
  // Likewise, behind what went before it in that sequence of packets.
  bool add(const packet::Outgoing& packet, DepartureStage::Place& place);
  void send();

 private:
  bool continues_run(std::size_t bytes) const;

  HostPort& host_;
  const PacketRoute& route_;
  const wire::IcrcRoute& icrc_;
  DepartureStage* const stage_;
  const std::size_t run_limit_;
  std::byte* const bytes_;
  std::size_t used_ = 0;
  bool run_closed_ = true;
  std::vector<PacketRun>& runs_;
};

}  // namespace weir::rnic
