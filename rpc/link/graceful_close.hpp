// When a link whose peer is to read one last frame may let go of its transport.
//
// Closing at once loses what the transport did not take yet, and a TCP socket that is closed with bytes
// unread makes the kernel send a reset, at which the peer's kernel throws away what it had for the peer to
// read (RFC 1122, 4.2.2.13; RFC 9293, 3.10.4). So: what waits is written, the transport is told that nothing
// follows, and what the peer still sends is read and dropped until it closes, too. A peer that ends its
// output first is written to nevertheless: it may still read. All of it is bounded, since a peer may do
// nothing of that: by a time, and by the bytes that are dropped.
//
// Pure: time is passed in.
#pragma once

#include <chrono>
#include <cstddef>

namespace weir::rpc {

struct EndLimits {
  std::chrono::microseconds linger{0};       // for all of it; 0: close at once
  std::size_t max_dropped_bytes = 16 << 20;  // that the peer still sends
};

class GracefulClose {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Next { wait, end_output, close };

  GracefulClose(const EndLimits& limits, TimePoint now)
      : max_dropped_bytes_(limits.max_dropped_bytes), until_(now + limits.linger) {}

  TimePoint until() const { return until_; }
  // All is written, so a peer that sends nothing more either has nothing to wait for.
  bool output_ended() const { return output_ended_; }

  // After each attempt to write.
  Next on_written(bool all) {
    if (!all || output_ended_) return Next::wait;
    output_ended_ = true;
    return Next::end_output;
  }
  Next on_dropped(std::size_t bytes) {
    dropped_ += bytes;
    return dropped_ > max_dropped_bytes_ ? Next::close : Next::wait;
  }
  Next on_time(TimePoint now) const { return now >= until_ ? Next::close : Next::wait; }

 private:
  const std::size_t max_dropped_bytes_;
  const TimePoint until_;
  std::size_t dropped_ = 0;
  bool output_ended_ = false;
};

}  // namespace weir::rpc
