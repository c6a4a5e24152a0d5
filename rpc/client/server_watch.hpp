// When a client gives up on a server that has gone without a word, such as one whose host lost its network.
//
// It is looked at three times in `limit`. A server from which nothing came since the last look is sent a
// ping, which servers of every release answer; if nothing comes until the next look, and it takes nothing of
// what waits for it, it has gone. So a server that has gone is noticed within `limit`. A look that comes
// late, since this program did something else, proves nothing: what the server sent may not have been read
// yet.
//
// Pure: time is passed in.
#pragma once

#include <chrono>

#include "rpc/link/peer_progress.hpp"

namespace weir::rpc {

class ServerWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Next { wait, ping, gone };

  ServerWatch(std::chrono::milliseconds limit, TimePoint now) : period_(limit / 3), last_(now) {}

  // Between looks.
  std::chrono::milliseconds period() const { return period_; }

  Next look(TimePoint now, const PeerProgress& progress) {
    const bool late = now - last_ >= 2 * period_;
    const bool came = progress.bytes_received != seen_.bytes_received;
    const bool taken = may_still_answer(seen_, progress);
    last_ = now;
    seen_ = progress;
    if (late || came) return pinged_ = false, Next::wait;
    if (pinged_) return taken ? Next::wait : Next::gone;
    pinged_ = true;
    return Next::ping;
  }

 private:
  const std::chrono::milliseconds period_;
  TimePoint last_;
  PeerProgress seen_;
  bool pinged_ = false;
};

}  // namespace weir::rpc
