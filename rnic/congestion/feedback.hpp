// What an acknowledgement tells the congestion controls that go by acknowledgements (DCTCP, HPCC, Swift).
//
// As in dcqcn.hpp: time is in whatever unit the caller counts, here with `time_units_per_s`; rates in bit/s;
// pure state, one thread at a time for each object.
#pragma once

#include <cstdint>
#include <span>

#include "rnic/congestion/dcqcn.hpp"

namespace weir::rnic::congestion {

// One hop of in-band telemetry: a switch port as the packet left it.
struct LinkReading {
  Time time = 0;
  std::uint64_t sent_bytes = 0;  // through the port so far
  std::uint32_t queue_bytes = 0;
  double rate = 0;  // of the link
};

struct Feedback {
  Time now = 0;
  Time round_trip = 0;             // from sending the packet until its acknowledgement
  std::uint32_t acknowledged = 0;  // packets below this one have arrived
  std::uint32_t next = 0;          // the packet that is sent next
  bool marked = false;             // ECN: the acknowledged packet had CE
  std::span<const LinkReading> links;
};

// The path of a flow, as its sender knows it.
struct PathFacts {
  double line_rate = 0;  // of the sender's link
  Time base_rtt = 1;     // without queues
  double packet_bits = 8192;
  double time_units_per_s = 1e9;

  // The rate that keeps one packet in flight.
  double packet_rate() const { return packet_bits * time_units_per_s / static_cast<double>(base_rtt); }
};

}  // namespace weir::rnic::congestion
