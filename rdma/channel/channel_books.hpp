// A channel's accounting: the window it granted, the window it has, and its outstanding work requests.
//
// Grants. The peer may have `window` data SENDs outstanding. A receive that was posted again is due back to
// the peer, and the credit travels with whatever we send next. An explicit acknowledgement is needed only
// when half the window is due, or when the peer has no credit left, so that no message of the peer's can come
// that we could answer. Invariant: granted() + due() + frames whose block is not posted again = window; so a
// data SEND always finds a receive, and explicit acknowledgements need three more (channel_wire.hpp),
// whatever is lost in delay.
//
// SendRing. An RC queue completes in order, so one completion stands for all requests before it: only every
// `interval`th asks for one. Invariants: outstanding() <= depth; while a caller waits for room, a signalled
// request is outstanding (interval < depth). Pure; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weir::rdma {

class Grants {
 public:
  explicit Grants(std::uint32_t window) : granted_(window), half_((window + 1) / 2) {}

  // A data SEND came. Returns false if the peer was not granted one.
  bool take() {
    if (granted_ == 0) return false;
    --granted_;
    return true;
  }
  void posted_again(std::uint32_t count) { due_ += count; }
  bool ack_wanted() const { return due_ >= half_ || (granted_ == 0 && due_ > 0); }
  // The credits to give back with the next immediate.
  std::uint16_t give() {
    const std::uint32_t credits = std::min<std::uint32_t>(due_, 0xffff);
    due_ -= credits;
    granted_ += credits;
    return static_cast<std::uint16_t>(credits);
  }
  std::uint32_t granted() const { return granted_; }
  std::uint32_t due() const { return due_; }

 private:
  std::uint32_t granted_;
  std::uint32_t half_;
  std::uint32_t due_ = 0;
};

class Credits {
 public:
  Credits() = default;
  explicit Credits(std::uint32_t window) : window_(window), left_(window) {}
  std::uint32_t left() const { return left_; }
  std::uint32_t window() const { return window_; }
  void spend() { --left_; }
  // Returns false if more credits came back than went out.
  bool returned(std::uint32_t credits) {
    if (credits > window_ - left_) return false;
    left_ += credits;
    return true;
  }

 private:
  std::uint32_t window_ = 0;
  std::uint32_t left_ = 0;
};

// `Entry` is what a work request keeps alive until it is known to be complete.
template <class Entry>
class SendRing {
 public:
  SendRing(std::uint32_t depth, std::uint32_t interval) : entries_(depth), interval_(interval) {}

  std::uint32_t outstanding() const { return static_cast<std::uint32_t>(head_ - tail_); }
  std::uint32_t room() const { return static_cast<std::uint32_t>(entries_.size()) - outstanding(); }
  bool has_unsignalled() const { return since_signal_ > 0; }
  bool must_signal() const { return since_signal_ + 1 >= interval_; }

  // The caller has checked that room() > 0.
  void posted(Entry entry, bool signalled) {
    entries_[head_++ % entries_.size()] = {std::move(entry), signalled};
    since_signal_ = signalled ? 0 : since_signal_ + 1;
  }
  // A signalled request completed: `done` gets its entry and those of all requests before it, in order.
  // Returns false if no signalled request was outstanding.
  template <class Done>
  bool completed(Done done) {
    bool signalled = false;
    while (!signalled && tail_ != head_) {
      Slot& slot = entries_[tail_++ % entries_.size()];
      signalled = slot.signalled;
      done(std::exchange(slot.entry, Entry{}));
    }
    return signalled;
  }
  void clear() {
    for (Slot& slot : entries_) slot.entry = Entry{};
    head_ = tail_ = 0;
    since_signal_ = 0;
  }

 private:
  struct Slot {
    Entry entry{};
    bool signalled = false;
  };
  std::vector<Slot> entries_;
  std::uint32_t interval_;
  std::uint32_t since_signal_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
};

// A queue that keeps its memory: it no longer allocates once it has reached its greatest length.
template <class T>
class ReusedQueue {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  T& operator[](std::size_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return slots_[head_ & (slots_.size() - 1)]; }
  void push_back(T value) {
    if (size() == slots_.size()) grow();
    slots_[tail_++ & (slots_.size() - 1)] = std::move(value);
  }
  T take_front() { return std::exchange(slots_[head_++ & (slots_.size() - 1)], T{}); }
  // Keeps the first `count` entries.
  void truncate(std::size_t count) {
    while (size() > count) slots_[--tail_ & (slots_.size() - 1)] = T{};
  }
  void clear() { truncate(0); }

 private:
  void grow() {
    std::vector<T> larger(std::max<std::size_t>(16, 2 * slots_.size()));
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    head_ = 0;
    tail_ = count;
  }
  std::vector<T> slots_;  // a power of two
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace weir::rdma
