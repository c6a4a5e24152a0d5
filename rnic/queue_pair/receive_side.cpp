#include "rnic/queue_pair/receive_side.hpp"

#include <mutex>

#include "rnic/queue_pair/shared_receive_queue.hpp"

namespace weir::rnic {

bool ReceiveSide::allocate() {
  const QpConfig& config = qp_.config;
  const bool allocated = rings_.allocate(config, config.srq != nullptr ? config.srq->max_wrs() : 0);
  if (allocated && config.has_own_receive_queue()) queue_.allocate();
  if (!allocated) rings_.free(config.type);
  rings_.show(*qp_.ctx);
  return allocated;
}

void ReceiveSide::free() {
  rings_.free(qp_.config.type);
  rings_.show(*qp_.ctx);
}

PostResult ReceiveSide::post(std::uint64_t wr_id, std::span<const Sge> sges) {
  if (!qp_.config.has_own_receive_queue() || qp_.state() == QpState::reset) return PostResult::bad_state;
  return queue_.post(wr_id, sges);
}

// With an SRQ there is nothing to publish: its count is one of slots.
void ReceiveSide::doorbell() {
  const std::uint32_t tail = queue_.tail();
  if (queue_.published() == tail) return;
  qp_.counters.receive_doorbells.add(1);
  if (is_datagram(qp_.config.type)) slots_.open(queue_.published(), tail);
  queue_.publish();
  // seq_cst: pairs with announce_parked(); see there.
  qp_.ctx->rq_posted.store(tail, std::memory_order_seq_cst);
  qp_.kick_initiator_if_parked();
  if (flushing_.load(std::memory_order_seq_cst)) qp_.raise(qp_.receives, Solicited::yes);
}

std::size_t ReceiveSide::poll(std::span<WorkCompletion> out) {
  // Read before checking for arrivals: once it is set nothing more arrives, and what has
  // arrived is not flushed.
  const bool flushing = qp_.config.has_own_receive_queue() && flushing_.load(std::memory_order_seq_cst);
  std::size_t received = is_datagram(qp_.config.type) ? slots_.poll(out) : completions_.poll(out);
  if (flushing) received += queue_.poll_flushed(out.subspan(received));
  if (received != 0) count(out.first(received));
  return received;
}

void ReceiveSide::count(std::span<const WorkCompletion> polled) {
  QpCounters& counters = qp_.counters;
  const bool datagrams = is_datagram(qp_.config.type);
  std::uint64_t good = 0;
  for (const WorkCompletion& wc : polled) {
    if (wc.status == WcStatus::success)
      ++good;
    else
      (wc.status == WcStatus::wr_flush_err ? counters.receives_flushed : counters.receive_errors).add(1);
    if (!datagrams || wc.status != WcStatus::success) continue;
    counters.datagram_bytes.add(wc.byte_len - (wc.has_grh ? grh_bytes : 0));
    counters.datagrams.add(1);
  }
  counters.receives.add(good);
}

std::size_t ReceiveSide::unpolled() const {
  if (flushing_.load(std::memory_order_acquire) && qp_.config.has_own_receive_queue())
    return qp_.ctx->rq_posted.load(std::memory_order_acquire) - queue_.polled();
  return arrived();
}

std::size_t ReceiveSide::arrived() const {
  return is_datagram(qp_.config.type) ? slots_.unpolled() : completions_.unpolled();
}

void ReceiveSide::flush() {
  if (flushing_.exchange(true, std::memory_order_seq_cst)) return;
  if (qp_.config.has_own_receive_queue())
    qp_.raise(qp_.receives, Solicited::yes);
  else if (qp_.config.srq != nullptr)
    qp_.nic.host.async_event(AsyncEvent::qp_last_wqe_reached, &qp_.queue_pair, nullptr);
}

void ReceiveSide::announce_unpolled(SpinLock& polls) const {
  {
    const std::lock_guard lock(polls);
    if (arrived() == 0) return;
  }
  qp_.raise(qp_.receives, Solicited::yes);
}

void ReceiveSide::open_slots_of_srq() {
  if (is_datagram(qp_.config.type) && qp_.config.srq != nullptr) slots_.open_all();
}

void ReceiveSide::reset() {
  give_back_unpolled();
  flushing_ = false;
  queue_.reset();
  if (!is_datagram(qp_.config.type) && !qp_.config.is_xrc()) completions_.reset();
}

void ReceiveSide::append_completed(std::vector<std::uint32_t>& numbers) const {
  if (is_datagram(qp_.config.type)) return slots_.append_completed(numbers);
  completions_.append_completed(numbers);
}

void ReceiveSide::give_back_unpolled() {
  if (qp_.config.srq == nullptr) return;
  std::vector<std::uint32_t> numbers;
  append_completed(numbers);
  for (const std::uint32_t number : numbers) qp_.config.srq->free_wqe(number);
}

std::optional<std::vector<std::uint32_t>> ReceiveSide::keys() {
  if (qp_.config.srq != nullptr) return qp_.config.srq->receive_keys();
  // A thread that posts receives may hold this lock while it waits for the adapter's, which we hold.
  const bool known = qp_.config.has_own_receive_queue() && !has_many_senders(qp_.config.type);
  if (!known || !lock().try_lock()) return std::nullopt;
  std::vector<std::uint32_t> keys = queue_.keys();
  lock().unlock();
  return keys;
}

}  // namespace weir::rnic
