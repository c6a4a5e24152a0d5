// What the library that `weir fabric run` preloads into programs (twin/inside) offers to the NIC in the same
// process. The NIC finds it by its name in the process; where it is not preloaded there is no fabric.
//
// Threading: all functions from any thread of the process that holds the baton, which is every thread that
// runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "link/fabric/arena.hpp"

namespace weir::link::fabric {

// Writes lines that tell the NIC's state, at most `room` bytes; returns how many. Takes no lock.
using DescribeNic = std::size_t (*)(char* to, std::size_t room);

struct Inside {
  Arena* arena;
  ProcessRecord* process;
  // The running thread's clock.
  Ticks (*now)();
  // A completion queue was polled in vain: waits until packets arrive, another thread of the process has run,
  // or for a while that grows as long as polls find nothing; `first` begins it anew.
  void (*polled_in_vain)(bool first);
  // Packets were sent or taken.
  void (*worked)();
  // The outbox is full: lets the network take it.
  void (*flush)();
  // `descriptor` becomes readable (an eventfd is written) when packets wait and the thread that calls waits
  // for descriptors.
  void (*watch_packets)(int descriptor);
  // For the report of a run in which nothing goes on.
  void (*describe_with)(DescribeNic);
};

// The name under which the library exports `const Inside* ()`; nullptr: this process is outside.
inline constexpr char inside_name[] = "weir_twin_inside";
using InsideFunction = const Inside* (*)();

}  // namespace weir::link::fabric
