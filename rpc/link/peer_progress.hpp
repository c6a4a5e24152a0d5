// Decides whether a peer that did not answer a ping in time is nevertheless alive.
//
// A pong follows everything that the peer is sending, and a ping follows everything that waits to be sent. An
// attachment of a gigabyte delays either for as long as it takes, but an end that sends or receives it is
// alive. Only progress counts: a peer that took bytes because its socket had room, and sends nothing, gets no
// more time once nothing waits.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::rpc {

struct PeerProgress {
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::size_t bytes_waiting = 0;  // to be sent
};

// `before` the ping, and when its time was over. True: ask again.
inline bool may_still_answer(const PeerProgress& before, const PeerProgress& now) {
  if (now.bytes_received != before.bytes_received) return true;
  return before.bytes_waiting > 0 && now.bytes_sent != before.bytes_sent;
}

}  // namespace weir::rpc
