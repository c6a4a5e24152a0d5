// Receive-side scaling: a steering target that has no queue of its own but spreads what comes over work
// queues, by a hash of each frame's headers (ibv_create_rwq_ind_table(3), ibv_create_qp_ex(3)).
//
// A work queue is a receive queue alone, with a number like a queue pair's; the queue pair that spreads
// (QpType:: rss) has a hash and an indirection table in its process's shared segment, where senders read
// them. Both are written when it is created and never again. What a neighbour may have scribbled over them
// loses frames, or brings them to another work queue of that process.
#pragma once

#include <optional>

#include "rnic/ethernet/rx_hash.hpp"
#include "rnic/peer.hpp"

namespace weir::rnic {

inline constexpr std::uint32_t max_indirection_entries = 2048;

// The index of the work queue to which that queue pair leads the frame: by the hash's low bits, and the
// table's first for a frame that does not have the hash's fields. Nothing: no table is where it says.
std::optional<std::uint32_t> scaled_queue(Peer&, const QpContext& rss, const FrameKey&);

}  // namespace weir::rnic
