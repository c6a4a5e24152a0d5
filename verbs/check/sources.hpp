// Whether what a request sends is changed before its completion is polled.
//
// Threading: under the queue pair's record's lock.
#pragma once

#include "verbs/check/work.hpp"

namespace weir::check {

// At its post.
void note_source(QueuePairRecord&, PostedSend&);
// Memory that the NIC may fill.
void note_destinations(const Pieces&);
// Its completion, or that of a later request, was polled.
void check_source(const QueuePairRecord&, const PostedSend&, const CallSite& polled_at);

}  // namespace weir::check
