// Event descriptors count one for each pending event. When an object is destroyed its undelivered events go
// with it, and so must their counts: an event loop that saw the descriptor readable would block in
// ibv_get_cq_event for ever.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "link/not_cancelled.hpp"

namespace weir::verbs {

// Never blocks, even if another thread is reading the same descriptor.
inline void discard_events(int eventfd, std::size_t count) {
  const link::NotCancelled whole;
  std::uint64_t one = 0;
  const iovec into{&one, sizeof one};
  while (count > 0 && ::preadv2(eventfd, &into, 1, -1, RWF_NOWAIT) == sizeof one) --count;
}

}  // namespace weir::verbs
