// An event descriptor counts one for each pending event. Destroying an object drops its undelivered
// events, so their counts must go too: otherwise an event loop would find the descriptor readable and
// block in ibv_get_cq_event for ever.
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
