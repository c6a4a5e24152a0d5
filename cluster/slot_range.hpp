// A row of what CLUSTER SLOTS says: which primary has which slots.
#pragma once

#include <cstdint>

#include "cluster/node_address.hpp"

namespace weir::cluster {

struct SlotRange {
  std::uint16_t first = 0, last = 0;  // both included
  NodeAddress primary;
};

}  // namespace weir::cluster
