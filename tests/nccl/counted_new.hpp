// Counts the allocations with new of a thread, in this program and in libraries that it opens (it exports
// operator new).
#pragma once

namespace weir::nccl::testing_support {

// For the calling thread.
void start_counting();
int stop_counting();

}  // namespace weir::nccl::testing_support
