// Which test of the responder an access to a neighbour's memory fails, for people to read.
//
// The responder only asks whether all hold (RemoteQueuePair::permits, then check_rkey), in the same order.
#pragma once

#include <cstdint>

#include "rnic/peer.hpp"

namespace weir::rnic {

enum class AccessRefusal : std::uint8_t {
  none,
  queue_pair_rights,  // an invalid request; all others are errors of access
  no_such_key,
  other_domain,
  region_rights,
  other_window,  // a type 2 window of another queue pair, or invalidated
  bounds
};

struct RemoteAccess {
  std::uint64_t addr = 0, length = 0;
  std::uint32_t rkey = 0;
  std::uint32_t need = 0;  // one of namespace access
};

AccessRefusal why_refused(const Peer& target, Qpn queue_pair, const RemoteAccess&);

}  // namespace weir::rnic
