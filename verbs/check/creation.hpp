// Puts new objects on record; `caller` is the return address of the creating call.
#pragma once

#include <infiniband/verbs.h>

#include "verbs/check/objects.hpp"

namespace weir::check {

void object_created(const void* handle, Kind, std::vector<const void*> made_from, void* caller,
                    std::uint32_t number = 0);

struct QueuePairMade {
  ibv_qp_cap caps{};
  bool signals_all = false, has_builders = false;
};
void queue_pair_created(ibv_qp*, const QueuePairMade&, void* caller);
void completion_queue_created(ibv_cq*, void* caller);
void shared_receive_queue_created(ibv_srq*, void* caller);
void region_created(ibv_mr*, std::uint64_t iova, unsigned access, void* caller);

}  // namespace weir::check
