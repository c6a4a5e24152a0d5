// Whether a peer that did not answer a ping in time is alive even so.
//
// A pong comes behind all that the peer is sending, and a ping goes behind all that waits to be sent: an
// attachment of a gigabyte holds up either for as long as it takes, and whoever sends or takes it is alive.
// Only what goes on counts: a peer that took bytes because its socket had room for them, and says nothing,
// is given no more time once nothing waits any more.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::rpc {

struct LifeSigns {
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::size_t bytes_waiting = 0;  // to be sent
};

// `before` the ping, and when its time was over. True: ask again.
inline bool may_still_answer(const LifeSigns& before, const LifeSigns& now) {
  if (now.bytes_received != before.bytes_received) return true;
  return before.bytes_waiting > 0 && now.bytes_sent != before.bytes_sent;
}

}  // namespace weir::rpc
