// A send queue whose next WQE cannot be executed yet: how it waits, retries and gives up.
//
// Four outcomes park it: receiver not ready (RNR), no response (the target queue pair is not, or not yet,
// connected to us), late (the target's process has not got round to copying, decision 0006), and contended (a
// live process holds the lock of an atomic's word). A send queue with a rate limit also parks between
// messages. A parked queue is retried when the target kicks us, when the application polls, and by timer; its
// budget is rnr_retry x RNR timer, or (retry_cnt + 1) x timeout. Late and contended have no budget: on a wire
// the target's NIC would have answered, whatever the processes do. Datagrams wait in the same way for a
// connection to their destination's process.
#include <algorithm>
#include <utility>

#include "rnic/packet/rnr_timer.hpp"
#include "rnic/queue_pair/requester.hpp"
#include "rnic/tracer.hpp"

namespace weir::rnic {
namespace {

constexpr std::uint32_t min_rnr_spin = 2;
constexpr std::uint32_t max_rnr_spin = 100;

}  // namespace

// A receiver only slightly slower than us posts its next receive within a microsecond or two. Waiting for
// that costs less than parking, which makes the receiver kick us through the kernel. Adaptive: if the
// receiver shares our CPU, or is asleep, waiting never pays, and the spin shrinks to next to nothing.
bool Requester::receive_comes_soon() {
  if (parked() || qp_.config.type == QpType::uc) return false;
  for (std::uint32_t tries = 0; tries < rnr_spin_; ++tries) {
    if (target_.can_receive()) {
      rnr_spin_ = max_rnr_spin;
      return true;
    }
    cpu_relax();
  }
  rnr_spin_ = std::max(rnr_spin_ / 2, min_rnr_spin);
  return false;
}

// True: retry the WQE at once, because the reason went away while we announced that we wait.
bool Requester::park(Park why) {
  const std::uint64_t now_ns = qp_.nic.host.now_ns();
  SendWqe& wqe = sends_.next();
  const bool peer_dead = why != Park::contended && target_.gone();
  if (qp_.config.type == QpType::uc && (why != Park::late || peer_dead)) {
    parked_ = Park::none;
    lose(wqe);
    if (qp_.state() == QpState::sqd) sends_.drained();
    return true;
  }
  const std::optional<std::uint64_t> budget = budget_ns(why);
  if (parked_ != why) begin_park(why, wqe, now_ns, budget);
  if (peer_dead || (budget && pauses_.tried_for_ns(now_ns) >= *budget)) {
    parked_ = Park::none;
    fail(wqe, why == Park::rnr && !peer_dead ? WcStatus::rnr_retry_exc_err : WcStatus::retry_exc_err);
    return false;
  }
  if (why == Park::late) return false;  // the mover kicks late initiators, and so does a timer
  if (why == Park::contended) {         // the lock's holder does not know that we wait
    qp_.whole.note_parked();
    if (const auto at_ns = pauses_.next(qp_.nic.host.now_ns())) qp_.nic.host.wake_at(*at_ns);
    return false;
  }
  if (announced_ || !target_.connected()) return false;
  target_.announce_parked();
  announced_ = true;
  return true;  // one more look, now that the target knows that we wait
}

void Requester::begin_park(Park why, SendWqe& wqe, std::uint64_t now_ns,
                           std::optional<std::uint64_t> budget_ns) {
  parked_ = why;
  (why == Park::rnr ? qp_.counters.rnrs : qp_.counters.no_responses).add(1);
  if (qp_.tracer != nullptr)
    qp_.tracer->parked(qp_.queue_pair, wqe,
                       why == Park::rnr ? Tracer::WaitsFor::receive : Tracer::WaitsFor::answer,
                       target_.target_min_rnr_timer());
  pauses_.begin(now_ns);
  announced_ = false;
  qp_.whole.note_parked();  // before its timer, which else could come in vain
  if (budget_ns) qp_.nic.host.wake_at(now_ns + *budget_ns);
}

// The next datagrams wait behind it, because completions come in order; the posting thread does not. True:
// check once more, because the connection attempt may have ended before anyone could know that we wait.
bool Requester::park_until_connected() {
  if (std::exchange(parked_, Park::connecting) == Park::connecting) return false;
  qp_.whole.note_parked();
  return true;
}

// Until the rate limit lets the next message go. By timer, and whenever the application polls. A weak NIC
// then executes by its own choices.
bool Requester::must_wait_its_turn() {
  while (refuses_length(sends_.next())) {
    if (act_on(target_.refuse(Outcome::nak_invalid), sends_.next(), qp_.state()) == Next::stop) return true;
    if (sends_.all_executed()) return true;
  }
  const std::uint64_t due_ns = pacer_.due_ns();
  if (due_ns <= qp_.nic.host.now_ns() || under_way()) {
    if (weak_ == nullptr) return false;
    execute_weakly();
    return true;
  }
  parked_ = Park::paced;
  qp_.whole.note_parked();
  if (const auto at_ns = pauses_.at(due_ns, qp_.nic.host.now_ns())) qp_.nic.host.wake_at(*at_ns);
  return true;
}

std::optional<std::uint64_t> Requester::budget_ns(Park why) const {
  const QpAttributes& attributes = qp_.attributes;
  if (why == Park::rnr) {
    if (attributes.rnr_retry == rnr_retry_for_ever) return std::nullopt;
    return rnr_timer_ns(target_.target_min_rnr_timer()) * attributes.rnr_retry;
  }
  if (why == Park::late || why == Park::contended || attributes.timeout == 0) return std::nullopt;
  return ack_timeout_ns(attributes.timeout) * (attributes.retry_cnt + 1u);
}

void Requester::resume() {
  announced_ = false;  // a kick took the flag with it
  if (!parked()) return;
  if (under_way() && parked_ != Park::connecting) qp_.counters.retries.add(1);
  execute();
}

void Requester::give_up() {
  parked_ = Park::none;
  dial_ = 0;
  target_.give_up_send();
  if (weak_ != nullptr) weak_->forget(sends_.doorbell());
}

bool Requester::fail_parked() {
  if (weak_ != nullptr) complete_executed();
  if (!parked()) return false;
  parked_ = Park::none;
  fail(sends_.next(), WcStatus::retry_exc_err);
  return true;
}

}  // namespace weir::rnic
