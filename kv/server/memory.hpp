// How much heap the process uses, for maxmemory and INFO.
#pragma once

#include <cstddef>

namespace weir::kv {

// Bytes handed out by malloc and not freed. A few microseconds: call it for a batch of work, not for each
// step.
std::size_t used_memory();
std::size_t resident_memory();  // as the kernel counts

}  // namespace weir::kv
