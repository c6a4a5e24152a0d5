// Who calls. librdmacm and libibverbs read, poll and close descriptors through the C library, and so through
// our functions; among these are the very ones whose numbers the program knows as rsockets.
#pragma once

namespace weir::rspreload {

// Whether `return_address` lies in librdmacm, libibverbs or this library. Any thread.
bool is_of_rdma_libraries(const void* return_address);

}  // namespace weir::rspreload
