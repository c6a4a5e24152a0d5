// Counts of a queue pair's packets, for monitoring.
#pragma once

#include <cstdint>

namespace weir::rnic::packet {

struct RequesterCounts {
  std::uint64_t packets = 0, retransmitted = 0;  // packets: retransmitted ones too
  std::uint64_t sequence_naks = 0, rnr_naks = 0, fatal_naks = 0;
  std::uint64_t implied_naks = 0;  // an answer behind one that did not come
  std::uint64_t probes = 0, timeouts = 0;
  std::uint64_t stray = 0;  // answers to nothing outstanding: duplicates, forgeries
};

struct ResponderCounts {
  std::uint64_t packets = 0;  // accepted
  std::uint64_t duplicates = 0, early = 0;
  std::uint64_t acks = 0, sequence_naks = 0, rnr_naks = 0, fatal_naks = 0;
  std::uint64_t replays = 0;  // of READs and atomics
  std::uint64_t dropped = 0;  // no answer: unknown duplicates, nonsense
  std::uint64_t outside =
      0;  // no answer: what no peer sends now, by its PSN or as another packet of that PSN
};

}  // namespace weir::rnic::packet
