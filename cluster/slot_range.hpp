// A row of CLUSTER SLOTS: a range of slots and its primary.
#pragma once

#include <cstdint>

#include "cluster/node_address.hpp"

namespace weir::cluster {

struct SlotRange {
  std::uint16_t first = 0, last = 0;  // both inclusive
  NodeAddress primary;
};

}  // namespace weir::cluster
