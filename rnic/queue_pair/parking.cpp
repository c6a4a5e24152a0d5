// A send queue whose next WQE cannot be executed yet: how it waits, is tried again, and is given up.
//
// Four outcomes park it: receiver not ready (RNR), no response (the target queue pair is not connected to us,
// or not yet), late (the target's process has not come to copying, decision 0006), and contended (an atomic's
// word is locked by a process that lives). A send queue with a rate limit also parks between messages. A
// parked queue is tried again when the target kicks us, when the application polls, and by timer; its budget
// is rnr_retry x RNR timer, or (retry_cnt + 1) x timeout. Late and contended have none: on a wire the
// target's NIC would have answered, whatever the processes do. Datagrams wait likewise for a connection to
// their destination's process.
#include <algorithm>
#include <cstring>
#include <utility>

#include "rnic/adapter.hpp"
#include "rnic/packet/rnr_timer.hpp"
#include "rnic/queue_pair/queue_pair.hpp"

namespace weir::rnic {
namespace {

constexpr std::uint32_t min_rnr_spin = 2;
constexpr std::uint32_t max_rnr_spin = 100;
constexpr std::uint64_t shortest_pause_ns = 100'000, longest_pause_ns = 20'000'000;  // between tries by timer

}  // namespace

// A receiver that is merely a little slower than us posts its next receive within a microsecond or two.
// Waiting for that costs less than parking, which makes the receiver kick us through the kernel. Adaptive:
// where the receiver shares our CPU, or is asleep, waiting never pays, and the spin shrinks to next to
// nothing.
bool QueuePair::receive_comes_soon() {
  if (parked_ != Park::none || qp_.config.type == QpType::uc) return false;
  for (std::uint32_t tries = 0; tries < rnr_spin_; ++tries) {
    if (remote_.can_receive()) {
      rnr_spin_ = max_rnr_spin;
      return true;
    }
    cpu_relax();
  }
  rnr_spin_ = std::max(rnr_spin_ / 2, min_rnr_spin);
  return false;
}

// True: try the WQE again at once, because the reason went away while we announced that we wait.
bool QueuePair::park(Park why) {
  const std::uint64_t now_ns = nic_.host().now_ns();
  SendWqe& wqe = sq_.at(sq_.executed.load(std::memory_order_relaxed));
  const bool peer_dead = why != Park::contended && remote_.gone();
  // Unreliable: what cannot be delivered is lost, silently.
  if (qp_.config.type == QpType::uc && (why != Park::late || peer_dead)) {
    parked_ = Park::none;
    charge(wqe);
    qp_.counters.count_done(nullptr, wqe.opcode, wqe.byte_len);
    complete_send(wqe, WcStatus::success);
    if (state() == QpState::sqd) drained();
    return true;
  }
  const std::optional<std::uint64_t> budget = budget_ns(why);
  if (parked_ != why) {
    parked_ = why;
    (why == Park::rnr ? qp_.counters.rnrs : qp_.counters.no_responses).add(1);
    if (qp_.tracer != nullptr)
      qp_.tracer->parked(*this, wqe, why == Park::rnr ? Tracer::WaitsFor::receive : Tracer::WaitsFor::answer,
                         remote_.target_min_rnr_timer());
    parked_since_ns_ = now_ns;
    announced_ = false;
    if (budget) nic_.host().wake_at(now_ns + *budget);
    nic_.note_parked(*this);
  }
  if (peer_dead || (budget && now_ns - parked_since_ns_ >= *budget)) {
    parked_ = Park::none;
    fail_send(wqe, why == Park::rnr && !peer_dead ? WcStatus::rnr_retry_exc_err : WcStatus::retry_exc_err);
    return false;
  }
  if (why == Park::late) return false;  // its mover kicks those who were late, and a timer does
  if (why == Park::contended) {         // whoever holds the lock does not know that we wait
    try_again_by_timer();
    return false;
  }
  if (announced_ || !remote_.connected()) return false;
  remote_.announce_parked();
  announced_ = true;
  return true;  // one more look, now that the target knows that we wait
}

// With pauses that grow with the time for which it has been tried, and one timer however often others try.
void QueuePair::try_again_by_timer() {
  const std::uint64_t now_ns = nic_.host().now_ns();
  if (now_ns < next_try_ns_) return;
  next_try_ns_ = now_ns + std::clamp((now_ns - parked_since_ns_) / 4, shortest_pause_ns, longest_pause_ns);
  nic_.host().wake_at(next_try_ns_);
}

// The next datagrams wait behind it, as completions come in order; who posts them does not. True: look once
// more, because it may have been decided before anybody could know that we wait.
bool QueuePair::park_until_connected() {
  if (std::exchange(parked_, Park::connecting) == Park::connecting) return false;
  nic_.note_parked(*this);
  return true;
}

// Until the rate limit lets the next message go. By timer, and whenever the application polls.
bool QueuePair::must_wait_its_turn() {
  const std::uint64_t due_ns = pacer_.due_ns();
  if (due_ns <= nic_.host().now_ns()) return false;
  if (under_way()) return false;
  if (std::exchange(parked_, Park::paced) == Park::none) nic_.note_parked(*this);
  if (std::exchange(next_try_ns_, due_ns) != due_ns) nic_.host().wake_at(due_ns);
  return true;
}

// What a WQE says of its destination is in the address handle, which a program may destroy when it has posted
// (mckey does).
void QueuePair::keep_addresses() {
  if (qp_.config.type != QpType::ud) return;
  const std::uint32_t executed = sq_.executed.load(std::memory_order_relaxed);
  if (static_cast<std::int32_t>(kept_until_ - executed) <= 0) {
    kept_paths_.clear();
    kept_until_ = executed;
  }
  for (; kept_until_ != sq_.doorbell; ++kept_until_) {
    DatagramAddress& address = sq_.at(kept_until_).datagram;
    if (address.path != nullptr) address.path = &kept_paths_.emplace_front(*address.path);
  }
}

std::optional<std::uint64_t> QueuePair::budget_ns(Park why) const {
  if (why == Park::rnr) {
    if (attributes_.rnr_retry == rnr_retry_for_ever) return std::nullopt;
    return rnr_timer_ns(remote_.target_min_rnr_timer()) * attributes_.rnr_retry;
  }
  if (why == Park::late || why == Park::contended || attributes_.timeout == 0) return std::nullopt;
  return ack_timeout_ns(attributes_.timeout) * (attributes_.retry_cnt + 1u);
}

// Never waits for the send lock: its holder may be the application between ibv_wr_start and ibv_wr_complete.
// Then the holder goes on in our place, or a kick would be lost and the queue stay parked for ever.
bool QueuePair::resume() {
  resume_wanted_.store(true, std::memory_order_seq_cst);  // see SpinLock::unlock_and_look()
  if (!send_lock_.try_lock()) return true;
  resume_wanted_.store(false, std::memory_order_relaxed);
  announced_ = false;  // a kick took the flag with it
  const bool on_its_way = packets_ != nullptr && resume_packets();
  if (parked_ != Park::none) {
    if (parked_ != Park::connecting && parked_ != Park::paced) qp_.counters.retries.add(1);
    execute();
  }
  const bool flushes_later = flush_waits_for_ && !flush_receives_once_left();
  const bool still = parked_ != Park::none || flushes_later || on_its_way;
  unlock_sends();
  return still;
}

void QueuePair::unlock_sends() {
  const bool nothing_to_resume = parked_ == Park::none && !flush_waits_for_ && packets_ == nullptr;
  if (nothing_to_resume) return send_lock_.unlock();
  send_lock_.unlock_and_look();
  if (resume_wanted_.load(std::memory_order_seq_cst)) (void)resume();
}

}  // namespace weir::rnic
