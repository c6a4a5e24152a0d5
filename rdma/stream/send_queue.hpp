// The books on a send queue and on the staging ring behind it: what is posted, what is known to be done, and
// which work requests must ask for a completion.
//
// Most requests are unsignalled; one completion stands for all before it. Two things force a signal, so that
// the writer can never wait for a completion that will not come: `interval` requests since the last one, or
// as many staged bytes as should stay in the cache, a quarter of the ring at most. Invariants: outstanding()
// <= depth; tail <= head <= tail + ring; as long as a write is refused for want of room here, a signalled
// request is outstanding. Pure; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::rdma {

class SendQueue {
 public:
  // Slots that data never takes, so that an announcement always can go out.
  static constexpr std::uint32_t reserved_for_control = 8;
  // A signal for every so many staged bytes: once they are sent, the next are staged over them, in the cache.
  static constexpr std::uint32_t warm_bytes = 8 << 10;
  // Signals that can be outstanding at once.
  static constexpr std::uint32_t max_marks = 32;

  SendQueue(std::uint32_t depth, std::uint32_t interval, std::uint32_t ring_bytes)
      : depth_(depth), interval_(std::min(interval, depth / 2)), ring_bytes_(ring_bytes) {}

  std::uint64_t posted() const { return posted_; }  // since the start
  std::uint64_t done() const { return done_; }      // of these, from the first on
  std::uint32_t outstanding() const { return static_cast<std::uint32_t>(posted_ - done_); }
  bool has_unsignalled() const { return since_signal_ > 0; }
  bool room_for_control() const { return outstanding() < depth_ && marks_used() < max_marks; }
  // A window's binding, and the message with its key.
  bool room_for_announcement() const { return outstanding() + 2 <= depth_ && marks_used() < max_marks; }
  bool room_for_data() const {
    return outstanding() + reserved_for_control < depth_ && marks_used() + reserved_for_control < max_marks;
  }

  // The next free stretch of the ring.
  std::uint32_t stage_offset() const { return static_cast<std::uint32_t>(head_ % ring_bytes_); }
  std::uint32_t stage_room() const {
    const auto free = static_cast<std::uint32_t>(ring_bytes_ - (head_ - tail_));
    return std::min(free, ring_bytes_ - stage_offset());
  }

  // Must a data request with `staged` bytes in the ring (0: they are elsewhere) ask for a completion?
  bool must_signal(std::uint32_t staged) const {
    return since_signal_ + 1 >= interval_ ||
           bytes_since_signal_ + staged >= std::min(ring_bytes_ / 4, warm_bytes);
  }

  void posted(std::uint32_t staged, bool signalled) {
    ++posted_;
    head_ += staged;
    ++since_signal_;
    bytes_since_signal_ += staged;
    if (!signalled) return;
    marks_[mark_head_++ % max_marks] = {posted_, head_};
    since_signal_ = 0;
    bytes_since_signal_ = 0;
  }

  // A signalled request completed, and with it all before it. False: none was outstanding.
  bool completed() {
    if (marks_used() == 0) return false;
    const Mark& mark = marks_[mark_tail_++ % max_marks];
    done_ = mark.posted;
    tail_ = std::max(tail_, mark.head);
    // All was sent: from the ring's start again, which is in the cache.
    if (tail_ == head_) head_ = tail_ = (head_ + ring_bytes_ - 1) / ring_bytes_ * ring_bytes_;
    return true;
  }

 private:
  struct Mark {
    std::uint64_t posted = 0;
    std::uint64_t head = 0;
  };
  std::uint32_t marks_used() const { return mark_head_ - mark_tail_; }

  std::uint32_t depth_;
  std::uint32_t interval_;
  std::uint32_t ring_bytes_;
  std::uint64_t posted_ = 0;  // requests since the start
  std::uint64_t done_ = 0;
  std::uint64_t head_ = 0;  // bytes staged since the start
  std::uint64_t tail_ = 0;
  std::uint32_t since_signal_ = 0;
  std::uint32_t bytes_since_signal_ = 0;
  std::array<Mark, max_marks> marks_{};  // what each outstanding signal stands for
  std::uint32_t mark_head_ = 0;
  std::uint32_t mark_tail_ = 0;
};

}  // namespace weir::rdma
