// The coming events. There are two queues, because the numbers of their events differ a thousandfold:
//
// PortEvents: packets that leave ports and arrive at the far end. Packets on a wire arrive in order, so only
// the first of each wire has an event, and a port's transmitter has one. So the queue is as long as the
// number of busy ports, not packets, and stays in the cache. An event is one 64-bit word, `time << 20 |
// rank of its source at that time` (tie_order.hpp): comparing words also breaks ties, and every run is the
// same.
//
// RareEvents: timers, PFC frames, faults; ties are broken by the order of scheduling.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fabric/sim/ticks.hpp"
#include "fabric/sim/tie_order.hpp"

namespace weir::fabric::sim {

// A min-heap with four children per node. Keys need not be unique.
class KeyHeap {
 public:
  bool empty() const { return keys_.empty(); }
  std::uint64_t top() const { return keys_.front(); }

  void push(std::uint64_t key) {
    std::size_t at = keys_.size();
    keys_.push_back(key);
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (keys_[parent] <= key) break;
      keys_[at] = keys_[parent];
      at = parent;
    }
    keys_[at] = key;
  }

  void pop() {
    const std::uint64_t last = keys_.back();
    keys_.pop_back();
    if (!keys_.empty()) sink(last);
  }

 private:
  void sink(std::uint64_t key) {
    const std::size_t size = keys_.size();
    std::size_t at = 0;
    for (;;) {
      const std::size_t child = 4 * at + 1;
      if (child >= size) break;
      std::size_t least = child;
      for (std::size_t other = child + 1; other < std::min(size, child + 4); ++other)
        if (keys_[other] < keys_[least]) least = other;
      if (key <= keys_[least]) break;
      keys_[at] = keys_[least];
      at = least;
    }
    keys_[at] = key;
  }

  std::vector<std::uint64_t> keys_;
};

// A calendar: a ring of buckets, each for a short stretch of time, and the sorted run of the
// current stretch. Events too far ahead, or too many for a bucket, go into a heap; the earlier of
// run and heap is the next event. So a push writes one word, and a pop reads on. A heap alone took
// a third of the simulator's time.
class PortEvents {
 public:
  static constexpr unsigned source_bits = TieOrder::bits;
  static constexpr std::uint32_t most_sources = 1u << source_bits;
  // Each port is two sources: its packets' arrivals and its own transmissions.
  static constexpr std::uint32_t most_ports = most_sources / 2;

  explicit PortEvents(std::uint64_t seed)
      : ties_(seed), keys_(ring * bucket_keys), counts_(ring), used_(ring / 64) {}

  // Never 0: no event is at the beginning of time.
  std::uint64_t key(Ticks time, std::uint32_t source) const {
    return time << source_bits | ties_.rank(time, source);
  }
  static Ticks time_of(std::uint64_t key) { return key >> source_bits; }
  std::uint32_t source_of(std::uint64_t key) const {
    return ties_.source(time_of(key), key & (most_sources - 1));
  }

  // May move to the next bucket, which is not visible from outside.
  bool empty() {
    if (head_ == tail_ && in_ring_ != 0) refill();
    return head_ == tail_ && heap_.empty();
  }
  // The first event; no_key: none.
  static constexpr std::uint64_t no_key = ~std::uint64_t{0};
  std::uint64_t first() {
    if (head_ == tail_ && in_ring_ != 0) refill();
    const std::uint64_t far = heap_.empty() ? no_key : heap_.top();
    return head_ != tail_ && run_[head_] <= far ? run_[head_] : far;
  }
  // The queue must not be empty.
  std::uint64_t top() {
    if (head_ == tail_ && in_ring_ != 0) refill();
    return first_in_run() ? run_[head_] : heap_.top();
  }
  // True once after each move to another bucket: time to prefetch what its events will use.
  bool turned() { return std::exchange(turned_, false); }
  std::span<const std::uint64_t> run() const { return {run_.data() + head_, tail_ - head_}; }
  // Calls `visit` with the source of each event in the bucket after the current one, unsorted.
  template <class Visit>
  void visit_following(Visit visit) const {
    const std::size_t place = (now_ + 1) % ring;
    for (unsigned i = 0; i < counts_[place]; ++i)
      visit(source_of(whole_key(now_ + 1, keys_[place * bucket_keys + i])));
  }
  // The event `steps` after the first one, within the current stretch; 0: unknown.
  std::uint64_t ahead(std::uint32_t steps) const { return head_ + steps < tail_ ? run_[head_ + steps] : 0; }

  void push(std::uint64_t key) {
    const std::uint64_t stretch = time_of(key) >> stretch_bits;
    if (in_ring_ == 0 && head_ == tail_) now_ = stretch;  // no event is nearer
    if (stretch <= now_) return push_into_run(key);
    if (stretch - now_ >= ring) return heap_.push(key);
    const std::size_t place = stretch % ring;
    if (counts_[place] == bucket_keys) return heap_.push(key);
    keys_[place * bucket_keys + counts_[place]++] = static_cast<std::uint32_t>(key);
    used_[place / 64] |= std::uint64_t{1} << (place % 64);
    ++in_ring_;
  }

  // Removes the event that top() returns.
  void pop() {
    if (head_ == tail_ && in_ring_ != 0) refill();
    if (first_in_run())
      ++head_;
    else
      heap_.pop();
  }

  void replace_top(std::uint64_t key) {
    pop();
    push(key);
  }

 private:
  // 0.64 ns: about ten events of a loaded network of hundreds of hosts. The ring covers 5 us, more than
  // a frame and a cable take.
  static constexpr unsigned stretch_bits = 6;
  static constexpr std::uint64_t ring = 8192;
  static constexpr std::size_t bucket_keys = 16;  // one cache line
  // The part of a key that a bucket stores: the rest is the same for its whole stretch.
  static constexpr unsigned low_bits = stretch_bits + source_bits;
  static constexpr std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;
  static_assert(low_bits <= 32);

  static std::uint64_t whole_key(std::uint64_t stretch, std::uint32_t low) {
    return stretch << low_bits | (low & low_mask);
  }

  bool first_in_run() const { return head_ != tail_ && (heap_.empty() || run_[head_] <= heap_.top()); }

  void push_into_run(std::uint64_t key) {
    if (tail_ == run_.size()) {
      if (head_ == 0) return heap_.push(key);
      std::copy(run_.begin() + head_, run_.begin() + tail_, run_.begin());
      tail_ -= head_;
      head_ = 0;
    }
    insert(key);
  }

  void insert(std::uint64_t key) {
    std::uint32_t at = tail_++;
    for (; at > head_ && run_[at - 1] > key; --at) run_[at] = run_[at - 1];
    run_[at] = key;
  }

  // The run is used up and the ring is not empty: the next bucket in time becomes the run.
  void refill() {
    std::size_t word = now_ % ring / 64;
    std::uint64_t bits = used_[word] & (~std::uint64_t{0} << (now_ % 64));
    while (bits == 0) {
      word = (word + 1) % used_.size();
      bits = used_[word];
    }
    const std::size_t place = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    now_ += (place - now_) % ring;
    used_[word] &= ~(std::uint64_t{1} << (place % 64));
    const std::uint32_t* keys = &keys_[place * bucket_keys];
    head_ = tail_ = 0;
    for (unsigned i = 0; i < counts_[place]; ++i) insert(whole_key(now_, keys[i]));
    in_ring_ -= counts_[place];
    counts_[place] = 0;
    turned_ = true;
    __builtin_prefetch(&keys_[(place + 2) % ring * bucket_keys]);
  }

  TieOrder ties_;
  std::uint64_t now_ = 0;  // the run's stretch; everything in the ring is later
  std::uint32_t head_ = 0, tail_ = 0;
  bool turned_ = false;
  std::uint64_t in_ring_ = 0;
  std::array<std::uint64_t, 64> run_;
  std::vector<std::uint32_t> keys_;   // of the bucket `stretch modulo ring`, bucket_keys each
  std::vector<std::uint8_t> counts_;  // apart from keys_: a push reads little and waits for no memory
  std::vector<std::uint64_t> used_;   // one bit per bucket that is not empty
  KeyHeap heap_;
};

enum class RareKind : std::uint8_t {
  pfc_arrival,     // a: port that must stop or continue, b: priority | quanta << 8
  pfc_refresh,     // a: port whose ingress priority group is over its limit, b: priority
  pause_expiry,    // a: port, b: priority
  retransmission,  // a: flow slot, b: flow id
  sample,
  watchdog_poll,
  deadlock_check,
  fault,  // a: index of the fault
  storm,  // a: index of the storm
  pause,  // a: index of the pause that is over
};

struct RareEvent {
  Ticks time;
  std::uint64_t order;
  std::uint32_t a, b;
  RareKind kind;
};

class RareEvents {
 public:
  Ticks next_time() const { return events_.empty() ? no_time : events_.front().time; }
  void push(Ticks time, RareKind kind, std::uint32_t a = 0, std::uint32_t b = 0) {
    events_.push_back({time, order_++, a, b, kind});
    std::push_heap(events_.begin(), events_.end(), later);
  }
  RareEvent pop() {
    std::pop_heap(events_.begin(), events_.end(), later);
    const RareEvent event = events_.back();
    events_.pop_back();
    return event;
  }

 private:
  static bool later(const RareEvent& a, const RareEvent& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }
  std::vector<RareEvent> events_;
  std::uint64_t order_ = 0;
};

}  // namespace weir::fabric::sim
