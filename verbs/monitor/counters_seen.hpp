// Reads the counters in a process's segment from outside that process.
#pragma once

#include <span>
#include <vector>

#include "rnic/memory/segment_layout.hpp"
#include "verbs/monitor/statistics.hpp"

namespace weir::verbs {

// Fills `queue_pairs`; the result points into it.
ProcessSeen read_counters(const rnic::SegmentHeader&, rnic::Slot, std::vector<QueuePairSeen>& queue_pairs);

// CountersSeen consists of 64-bit numbers only; this is the array of them.
std::span<std::uint64_t> words_of(CountersSeen&);
void add(CountersSeen& to, CountersSeen what);

}  // namespace weir::verbs
