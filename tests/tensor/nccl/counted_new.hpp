// Counts what a thread allocates with new, in this program and in the libraries that it opens (it exports
// operator new).
#pragma once

namespace weir::nccl::testing_support {

// Of the calling thread.
void start_counting();
int stop_counting();

}  // namespace weir::nccl::testing_support
