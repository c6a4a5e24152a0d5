// When a server gives up on a client that holds a connection and does nothing with it.
//
// A client has `first_frame` to send its first whole frame, and `frame` for each frame that it began, plus a
// second for each 64 KiB of it. A client that is silent for `keepalive` is sent a ping, which clients of
// every release answer, and has as long again to answer. Half of `first_frame` is also followed by a ping,
// because a program that connects early and calls late sends nothing by itself. A client that takes nothing
// of what waits for it within `keepalive` is given up. Time in which the server itself does not read is not
// counted against the client.
//
// Pure: time is passed in. Invariant: whatever a peer does or fails to do, the time until it is heard from or
// given up is bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weir::rpc {

struct PeerLimits {
  std::chrono::milliseconds first_frame{30'000};
  std::chrono::milliseconds frame{30'000};
  std::chrono::milliseconds keepalive{60'000};
  // How long a client without a call may stay before it is told `goodbye` and leaves; 0: for ever.
  std::chrono::milliseconds idle{0};
};

// What is known of a connection at the time of a look.
struct PeerSigns {
  std::uint64_t frames = 0;  // that came whole
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::size_t bytes_waiting = 0;  // to be sent
  std::size_t frame_bytes = 0;    // of the frame that is under way, as far as its header says; 0: none is
  std::uint64_t calls = 0;        // ever
  bool busy = false;              // a function runs for it
  bool reading = true;            // what it sends is read
};

class PeerWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Next { wait, ping, first_frame_late, frame_late, silent, takes_nothing, idle };

  PeerWatch(const PeerLimits& limits, TimePoint now)
      : limits_(limits), heard_(now), took_(now), whole_(now), called_(now) {}

  Next look(TimePoint now, const PeerSigns& signs) {
    const bool frames = signs.frames != last_.frames;
    if (frames || (signs.bytes_received != last_.bytes_received && last_.frames > 0)) {
      heard_ = now;
      pinged_ = false;
    }
    if (frames || signs.frame_bytes == 0 || !signs.reading) whole_ = now;
    if (signs.bytes_sent != last_.bytes_sent || signs.bytes_waiting == 0) took_ = now;
    if (signs.calls != last_.calls || signs.busy) called_ = now;
    last_ = signs;
    return judge(now, signs);
  }

 private:
  Next judge(TimePoint now, const PeerSigns& signs) {
    if (now - took_ >= limits_.keepalive) return Next::takes_nothing;
    if (!signs.reading) {
      heard_ = now;
      return Next::wait;
    }
    const bool greeted = signs.frames > 0;
    if (!greeted && now - heard_ >= limits_.first_frame) return Next::first_frame_late;
    const std::chrono::seconds for_its_size(signs.frame_bytes / (64 << 10));
    if (now - whole_ >= limits_.frame + for_its_size) return Next::frame_late;
    if (limits_.idle.count() > 0 && now - called_ >= limits_.idle) return Next::idle;
    const auto quiet = greeted ? limits_.keepalive : limits_.first_frame / 2;
    if (pinged_ && greeted && now - heard_ >= 2 * limits_.keepalive) return Next::silent;
    if (pinged_ || now - heard_ < quiet) return Next::wait;
    pinged_ = true;
    return Next::ping;
  }

  const PeerLimits limits_;
  PeerSigns last_;
  TimePoint heard_;   // or since when it is connected
  TimePoint took_;    // something of what waits, or there was nothing
  TimePoint whole_;   // since when a frame is under way
  TimePoint called_;  // or a function ran
  bool pinged_ = false;
};

}  // namespace weir::rpc
