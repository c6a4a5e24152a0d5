// What happens next. Two queues, because two kinds of events differ a thousandfold in number:
//
// PortEvents: packets leaving ports and arriving at the far end. Packets on one wire arrive in the order they
// left, so only the first of each wire has an event, and a port's transmitter has one: the queue is as long
// as there are busy ports, not packets, and stays in the cache. An event is one 64-bit word, `time << 20 |
// source`, so that comparing times breaks ties by source and a run is the same every time.
//
// RareEvents: timers, PFC frames, faults; a tie is broken by the order of scheduling.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fabric/sim/ticks.hpp"

namespace weir::fabric::sim {

// A min-heap with four children a node. Keys need not be unique.
class PortEvents {
 public:
  static constexpr unsigned source_bits = 20;
  static constexpr std::uint32_t most_sources = 1u << source_bits;

  static std::uint64_t key(Ticks time, std::uint32_t source) { return time << source_bits | source; }
  static Ticks time_of(std::uint64_t key) { return key >> source_bits; }
  static std::uint32_t source_of(std::uint64_t key) { return key & (most_sources - 1); }

  bool empty() const { return keys_.empty(); }
  std::size_t size() const { return keys_.size(); }
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

  // pop and push in one: half the work, and most events are followed by the next one of the same port.
  void replace_top(std::uint64_t key) { sink(key); }

 private:
  void sink(std::uint64_t key) {
    const std::size_t size = keys_.size();
    std::size_t at = 0;
    for (;;) {
      const std::size_t child = 4 * at + 1;
      if (child >= size) break;
      std::size_t least = child;
      if (child + 4 <= size) {
        const std::size_t a = keys_[child + 1] < keys_[child] ? child + 1 : child;
        const std::size_t b = keys_[child + 3] < keys_[child + 2] ? child + 3 : child + 2;
        least = keys_[b] < keys_[a] ? b : a;
      } else {
        for (std::size_t other = child + 1; other < size; ++other)
          if (keys_[other] < keys_[least]) least = other;
      }
      if (key <= keys_[least]) break;
      keys_[at] = keys_[least];
      at = least;
    }
    keys_[at] = key;
  }

  std::vector<std::uint64_t> keys_;
};

enum class RareKind : std::uint8_t {
  pfc_arrival,     // a: port that must stop or go on, b: priority | quanta << 8
  pfc_refresh,     // a: port whose ingress priority group is over, b: priority
  pause_expiry,    // a: port, b: priority
  retransmission,  // a: flow slot, b: flow id
  sample,
  watchdog_poll,
  deadlock_check,
  fault,  // a: index of the fault
  storm,  // a: index of the storm
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
