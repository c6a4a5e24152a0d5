// How many bytes go by TCP after a ring was full: TCP buffers more, and each change of carriers costs a round
// trip to the other host. `least` at first, twice as many each time it is full again, `most` at last; from
// `least` again after as many bytes by the ring as show that the reader keeps up. A send counts as
// `least_a_send`, so that who asks and answers in small pieces later is back soon.
//
// Pure. One thread at a time: the send gate's.
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
