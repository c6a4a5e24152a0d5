// How many bytes go by TCP after the ring was full. TCP buffers more, and each change of carrier costs a
// round trip to the other host. The amount starts at `least`, doubles each time the ring is full again, and
// stops at `most`. It returns to `least` once `keeps_up` bytes by the ring show that the reader keeps up. A
// send counts as at least `least_a_send`, so a program that turns to small requests is soon back on the ring.
//
// Pure. Not thread-safe: the send gate guards it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::sockets {

class AfterFull {
 public:
  static constexpr std::uint64_t least = 256 << 10, most = 64 << 20, keeps_up = 1 << 20,
                                 least_a_send = 16 << 10;

  bool may_enter() const { return left_ == 0; }
  void was_full() {
    left_ = next_;
    next_ = std::min(2 * next_, most);
    by_ring_ = 0;
  }
  void sent_by_tcp(std::uint64_t bytes) { left_ -= std::min(left_, std::max(bytes, least_a_send)); }
  void sent_by_ring(std::uint64_t bytes) {
    by_ring_ += bytes;
    if (by_ring_ >= keeps_up) next_ = least;
  }

 private:
  std::uint64_t left_ = 0, next_ = least, by_ring_ = 0;
};

}  // namespace weir::sockets
