// What a process's segment says it counted, as those see it who watch.
#pragma once

#include <span>
#include <vector>

#include "rnic/memory/segment_layout.hpp"
#include "verbs/monitor/statistics.hpp"

namespace weir::verbs {

// `queue_pairs` is filled and pointed to.
ProcessSeen read_counters(const rnic::SegmentHeader&, rnic::Slot, std::vector<QueuePairSeen>& queue_pairs);

// All of CountersSeen is numbers of one type.
std::span<std::uint64_t> words_of(CountersSeen&);
void add(CountersSeen& to, CountersSeen what);

}  // namespace weir::verbs
