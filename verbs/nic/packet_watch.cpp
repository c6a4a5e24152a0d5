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
  const bool wanted = wanted_.exchange(false, std::memory_order_relaxed);
  consider_sleeper(now_ns, wanted);
  if (lent_.load(std::memory_order_relaxed) != Lent::no) return;
  if (wanted) not_before_ns_ = std::max(not_before_ns_, now_ns + nap_ns);
  consider_poller(now_ns);
}

void PacketWatch::consider_sleeper(std::uint64_t now_ns, bool wanted) {
  const bool soon = now_ns < std::exchange(woken_ns_, now_ns) + doze_ns;
  wakes_ = !soon ? 0 : wanted ? wakes_ + 1 : wakes_;
  if (wakes_ < wakes_before || now_ns < sleeper_not_before_ns_) return;
  wakes_ = 0;
  const std::lock_guard lock(mutex_);
  if (lent_.load(std::memory_order_relaxed) != Lent::no || !port_.lend_to_sleeper()) return;
  lent_.store(Lent::to_sleeper, std::memory_order_seq_cst);
  lent_since_ns_ = now_ns;
  new_polls();
  port_.wait_for_packets(false);
  nap_until(now_ns + doze_ns);
}

void PacketWatch::consider_poller(std::uint64_t now_ns) {
  if (new_polls() == 0 || !polled_within(recently_ns, now_ns) || now_ns < not_before_ns_) return;
  const std::lock_guard lock(mutex_);
  // seq_cst with event_wanted(): who arms a queue looks whether the port is lent, and we look at the queues
  // after we lend it. At least one of us sees the other's store.
  if (lent_.exchange(Lent::to_poller, std::memory_order_seq_cst) != Lent::no) return;
  if (port_.has_sleepers()) {
    lent_.store(Lent::no, std::memory_order_seq_cst);
    not_before_ns_ = now_ns + nap_ns;  // asking costs something
    return;
  }
  lent_since_ns_ = now_ns;
  port_.wait_for_packets(false);
  nap_until(now_ns + nap_ns);
}

void PacketWatch::nap_until(std::uint64_t end_ns) {
  if (!std::exchange(naps_, true)) port_.wake_at(end_ns);
}

void PacketWatch::take_back() {
  const std::lock_guard lock(mutex_);
  const Lent was = lent_.exchange(Lent::no, std::memory_order_seq_cst);
  if (was == Lent::to_sleeper) port_.take_from_sleeper();
  if (was != Lent::no) port_.wait_for_packets(true);
}

void PacketWatch::nap_over(std::uint64_t now_ns) {
  naps_ = false;
  const Lent lent = lent_.load(std::memory_order_seq_cst);
  if (lent == Lent::no) return;
  const std::uint64_t length_ns = lent == Lent::to_sleeper ? doze_ns : nap_ns;
  // This thread may have taken the poller's processor, so a moment without a poll says nothing.
  const bool used = lent == Lent::to_sleeper
                        ? new_polls() != 0
                        : new_polls() >= polls_in_a_nap && polled_within(nap_ns / 2, now_ns);
  if (used) {
    if (now_ns - lent_since_ns_ > 20 * length_ns) pause_ns_ = first_pause_ns;  // it was right to lend
    return nap_until(now_ns + length_ns);
  }
  if (port_.holds_packets()) {
    not_before_ns_ = sleeper_not_before_ns_ = now_ns + pause_ns_;
    pause_ns_ = std::min(2 * pause_ns_, longest_pause_ns);
  }
  take_back();
}

}  // namespace weir::verbs
