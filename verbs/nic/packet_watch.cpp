#include "verbs/nic/packet_watch.hpp"

#include <algorithm>
#include <utility>

namespace weir::verbs {

// Since the last time that it was asked.
std::uint32_t PacketWatch::new_polls() {
  const std::uint32_t polls = polls_.load(std::memory_order_acquire);
  return polls - std::exchange(seen_polls_, polls);
}

void PacketWatch::woken(std::uint64_t now_ns) {
  if (wanted_.exchange(false, std::memory_order_relaxed))
    not_before_ns_ = std::max(not_before_ns_, now_ns + nap_ns);
  if (new_polls() == 0 || !polled_within(recently_ns, now_ns) || now_ns < not_before_ns_) return;
  const std::lock_guard lock(mutex_);
  // seq_cst with event_wanted(): who arms a queue looks whether the port is lent, and we look at the queues
  // after we lend it. At least one of us sees the other's store.
  if (lent_.exchange(true, std::memory_order_seq_cst)) return;
  if (port_.has_sleepers()) {
    lent_.store(false, std::memory_order_seq_cst);
    not_before_ns_ = now_ns + nap_ns;  // asking costs something
    return;
  }
  lent_since_ns_ = now_ns;
  port_.wait_for_packets(false);
  if (!std::exchange(naps_, true)) port_.wake_at(now_ns + nap_ns);
}

void PacketWatch::take_back() {
  const std::lock_guard lock(mutex_);
  if (lent_.exchange(false, std::memory_order_seq_cst)) port_.wait_for_packets(true);
}

void PacketWatch::nap_over(std::uint64_t now_ns) {
  naps_ = false;
  if (!lent_.load(std::memory_order_seq_cst)) return;
  // This thread may have taken the poller's processor, so a moment without a poll says nothing.
  const bool polls = new_polls() >= polls_in_a_nap && polled_within(nap_ns / 2, now_ns);
  if (polls) {
    constexpr std::uint64_t long_ns = 20 * nap_ns;  // it was right to lend
    if (now_ns - lent_since_ns_ > long_ns) pause_ns_ = first_pause_ns;
    naps_ = true;
    return port_.wake_at(now_ns + nap_ns);
  }
  if (port_.holds_packets()) {
    not_before_ns_ = now_ns + pause_ns_;
    pause_ns_ = std::min(2 * pause_ns_, longest_pause_ns);
  }
  take_back();
}

}  // namespace weir::verbs
