// The parts of this process's NIC that its queue pairs and shared receive queues work on. The adapter owns
// them; they outlive every holder of this struct.
#pragma once

#include "rnic/memory/protection_table.hpp"
#include "rnic/memory/segment.hpp"
#include "rnic/memory/window_table.hpp"
#include "rnic/peer.hpp"

namespace weir::rnic {

class Departures;

struct NicParts {
  Slot slot;
  Segment& segment;
  ProtectionTable& table;
  WindowTable& windows;
  HostPort& host;
  Departures& departures;
};

}  // namespace weir::rnic
