// Packets from other hosts that the NIC of this process dropped without an answer, by their reasons: what
// strangers send to an open port, or a peer behind NAT. Only Weir's software NIC counts them for a process.
//
// Threading: any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace weir::rdma {

struct PacketDrops {
  std::string_view reason;  // a word for names of metrics; stays valid
  std::uint64_t packets = 0;
};

// All reasons, those without packets too. Empty: another NIC, or none is in use yet.
std::vector<PacketDrops> packet_drops();

}  // namespace weir::rdma
