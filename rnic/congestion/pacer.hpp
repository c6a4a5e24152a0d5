// How fast a queue pair may send: its rate limit (packet pacing), or the static rate of its path (IBA 9.11).
//
// Each message delays the start of the next by its own duration at that rate. So the rate holds between
// messages, and each message is moved at once. An idle sender may send its unused share in a burst of at most
// `burst_bytes`. Each datagram has its own path, by its address handle; the time it takes at that path's
// static rate delays the next datagram, wherever that one goes. Pure: time is passed in.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::rnic {

struct RateLimit {
  std::uint32_t kbps = 0;         // of payload; 0: none
  std::uint32_t burst_bytes = 0;  // 0: the bytes sent in `shortest_burst_ns`
  bool operator==(const RateLimit&) const = default;
};

class Pacer {
 public:
  // A thread that sleeps until a message is due wakes somewhat late, and must be able to make up for it.
  static constexpr std::uint64_t shortest_burst_ns = 200'000;

  void set(RateLimit limit) {
    limit_ = limit;
    burst_ns_ = limit.burst_bytes != 0 ? duration_ns(limit.burst_bytes, limit.kbps) : shortest_burst_ns;
    due_ns_ = asks_always_ ? 1 : 0;
  }
  // From now on due_ns() is never 0, so that whoever looks at it looks further.
  void ask_always() {
    asks_always_ = true;
    due_ns_ = std::max<std::uint64_t>(due_ns_, 1);
  }
  // `path_kbps`: the static rate of the message's own path; 0: none.
  bool limits(std::uint32_t path_kbps = 0) const { return limit_.kbps != 0 || path_kbps != 0; }
  // When the next message may begin; if in the past, now. 0: nothing rate-limited was sent.
  std::uint64_t due_ns() const { return due_ns_; }
  void sent(std::uint64_t bytes, std::uint64_t now_ns, std::uint32_t path_kbps = 0) {
    const std::uint64_t earliest = now_ns > burst_ns_ ? now_ns - burst_ns_ : 0;
    due_ns_ = std::max(due_ns_, earliest) + duration_ns(bytes, slower(limit_.kbps, path_kbps));
  }

 private:
  static std::uint32_t slower(std::uint32_t a, std::uint32_t b) {
    return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
  }
  // At most 2^31 bytes; each takes 8 x 10^6 kb/s x ns.
  static std::uint64_t duration_ns(std::uint64_t bytes, std::uint32_t kbps) {
    return kbps == 0 ? 0 : bytes * 8'000'000 / kbps;
  }

  RateLimit limit_;
  std::uint64_t burst_ns_ = shortest_burst_ns;
  std::uint64_t due_ns_ = 0;
  bool asks_always_ = false;
};

}  // namespace weir::rnic
