// Pieces of the process's own memory that one work request, or one packet of it, covers.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>

#include "rnic/types.hpp"

namespace weir::rnic {

// The local side of a transfer: checked pieces of our own memory.
struct Gather {
  std::array<iovec, max_sge> pieces;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  bool is_ours = false;  // a WQE's inline data, which no program unmaps
  std::span<const iovec> span() const { return {pieces.data(), count}; }
};

}  // namespace weir::rnic
