#include "rnic/queue_pair/queue_pair.hpp"

#include <sched.h>

#include <algorithm>
#include <mutex>

#include "rnic/adapter.hpp"
#include "rnic/datagrams/datagram_packets.hpp"

namespace weir::rnic {
namespace {

constexpr std::uint64_t longest_delivery_ns = 100'000'000;  // one datagram

template <class Do>
void between_polls(CompletionQueue* cq, Do what) {
  if (cq == nullptr) return what();
  const std::lock_guard lock(cq->poll_lock());
  what();
}

// IBA 11.6.3.2: what the responder's NAK was about; mlx5's events of the same errors say it too.
AsyncEvent event_of(Fault fault) {
  switch (fault) {
    case Fault::invalid_request:
      return AsyncEvent::qp_request_error;
    case Fault::access:
      return AsyncEvent::qp_access_error;
    case Fault::operational:
      break;
  }
  return AsyncEvent::qp_fatal;
}

}  // namespace

QueuePair::QueuePair(Adapter& nic, std::uint32_t index, const QpConfig& config)
    : nic_(nic),
      qpn_(nic.slot(), index),
      config_(config),
      ctx_(&nic.segment().header().qps[index]),
      counters_(nic.segment().header().qp_counters[index]),
      tracer_(nic.tracer()),
      sq_(config.caps.max_send_wr, config.caps.max_send_sge, config.caps.max_inline) {
  ctx_->state = static_cast<std::uint32_t>(QpState::reset);
  ctx_->remote_qpn = 0;
  ctx_->hazard = 0;  // the last initiator may have died inside an operation
  ctx_->datagram_senders = 0;
  ctx_->type = static_cast<std::uint16_t>(config.type);
  begin_incarnation();
  ctx_->pd = config.pd;
  ctx_->xrcd = config.xrcd;
  ctx_->access = 0;
  ctx_->srq = config.srq ? config.srq->index() + 1 : 0;
  if (!sq_.allocated() || !allocate_rings()) {
    free_rings();
    ctx_ = nullptr;
    return;
  }
  show_rings();
  if (config.srq) config.srq->attached_qps.fetch_add(1);
  if (config.recv_cq) {
    recv_line_ = config.recv_cq->attach(this);
    ctx_->recv_cq = config.recv_cq->index();
    ctx_->cq_line = recv_line_;
  }
  send_line_ = recv_line_;
  if (config.send_cq && config.send_cq != config.recv_cq) send_line_ = config.send_cq->attach(this);
  // It has no states to go through: there is nothing to connect, and its work queues have their own.
  if (config.type == QpType::rss)
    ctx_->state.store(static_cast<std::uint32_t>(QpState::rtr), std::memory_order_seq_cst);
}

QueuePair::~QueuePair() {
  if (ctx_ == nullptr) return;
  if (home_) {
    close_opened();
    return;
  }
  if (tracer_ != nullptr) tracer_->forgotten(*this);
  nic_.windows().forget(qpn_);
  if (config_.type == QpType::ud) nic_.multicast().forget(qpn_.index());
  if (config_.type == QpType::raw_packet || config_.type == QpType::rss) nic_.steering().forget(qpn_.index());
  nic_.forget_parked(*this);
  if (config_.recv_cq) config_.recv_cq->detach(recv_line_);
  if (config_.send_cq && config_.send_cq != config_.recv_cq) config_.send_cq->detach(send_line_);
  give_back_unpolled();
  remote_.disconnect();
  close_packets();
  if (config_.srq) config_.srq->attached_qps.fetch_sub(1);
  // What others read of one of xrc_recv they read outside of operations, too.
  if (initiator_left_ || config_.type == QpType::xrc_recv)
    free_rings();
  else if (config_.srq)
    config_.srq->keep_rings();  // as ours are lost: an initiator that wakes up may still write there
}

void QueuePair::shut() {
  note_initiator();
  ctx_->state.store(static_cast<std::uint32_t>(QpState::reset), std::memory_order_seq_cst);
  ctx_->remote_qpn.store(0, std::memory_order_seq_cst);
}

bool QueuePair::modify(QpState to, const QpAttributes& attributes) {
  const bool same_host = attributes.path.via == Via::same_host;
  if (to == QpState::rtr && !is_datagram(config_.type) && same_host) {
    // Connecting may take a moment, so it happens before the lock and before we answer anybody.
    nic_.host().peer(attributes.destination.slot(), HostPort::Wait::yes);
  }
  // Whoever connected another process's queue pair, we may have to wait for its initiator.
  if (home_) nic_.host().peer(Qpn(ctx_->remote_qpn.load()).slot(), HostPort::Wait::yes);
  const InitiatorLeft left =
      to == QpState::reset || to == QpState::err ? answer_no_more(to) : InitiatorLeft::yes;
  send_lock_.lock();
  const bool done = modify_locked(to, attributes, left);
  unlock_sends();
  return done;
}

// Waits without the send lock, for which whatever comes from outside waits, the news that the initiator was
// killed too; and before the new attributes come, as the old ones say for whom.
QueuePair::InitiatorLeft QueuePair::answer_no_more(QpState to) {
  send_lock_.lock();
  note_initiator();
  ctx_->state.store(static_cast<std::uint32_t>(to), std::memory_order_seq_cst);
  if (to == QpState::reset) ctx_->remote_qpn.store(0, std::memory_order_seq_cst);
  unlock_sends();
  const bool left = wait_for_initiator(to == QpState::err ? longest_wait_in_error_ns : longest_operation_ns);
  return left ? InitiatorLeft::yes : InitiatorLeft::no;
}

bool QueuePair::modify_locked(QpState to, const QpAttributes& attributes, InitiatorLeft left) {
  note_initiator();
  if (to == QpState::reset && !reset(left)) return false;
  if (attributes.rate != attributes_.rate) pacer_.set(attributes.rate);
  attributes_ = attributes;
  if (attributes.path.via == Via::same_host)
    initiator_slot_.store(attributes.destination.slot(), std::memory_order_relaxed);
  ctx_->access.store(attributes.access | (attributes.max_dest_rd_atomic != 0 ? access::responder_depth : 0),
                     std::memory_order_relaxed);
  ctx_->qkey.store(attributes.qkey, std::memory_order_relaxed);
  ctx_->min_rnr_timer.store(attributes.min_rnr_timer, std::memory_order_relaxed);
  if (to == QpState::reset) return true;
  if (to == QpState::err) {
    flush_everything(left);
    return true;
  }
  const bool slots_closed = ctx_->rq_posted.load(std::memory_order_relaxed) == 0;
  if (to == QpState::init && is_datagram(config_.type) && !has_own_rq() && slots_closed) {
    open_datagram_slots(0, rings_.cqe_mask + 1);
    ctx_->rq_posted.store(rings_.cqe_mask + 1, std::memory_order_release);
  }
  if (to == QpState::rtr && attributes.path.via == Via::packets) {
    open_packets();
  } else if (to == QpState::rtr && !is_datagram(config_.type)) {
    ctx_->remote_qpn.store(attributes.destination.value(), std::memory_order_release);
    if (config_.type != QpType::xrc_recv) connect_remote(HostPort::Wait::no);
  }
  if (!leave_for(to)) return true;
  if (packets_ != nullptr) set_packets(to);
  if (to == QpState::rtr) kick_initiator_if_parked();
  if (to == QpState::rts) execute();
  if (to == QpState::sqd) {
    draining_.store(true, std::memory_order_release);
    // One request at a time is under way, and only while it is parked; of packets many are.
    if (answers_by_packets())
      execute_packets();
    else if (!under_way())
      drained();
  } else {
    draining_.store(false, std::memory_order_release);
  }
  return true;
}

// False: since the caller checked the transition an initiator has moved us to err (responder.cpp). Then that
// holds, as if it had come right after, and on_fault() flushes.
bool QueuePair::leave_for(QpState to) {
  auto from = ctx_->state.load(std::memory_order_relaxed);
  while (from != static_cast<std::uint32_t>(QpState::err)) {
    // seq_cst: an initiator that found us not ready has parked and set its flag before; we look at it right
    // after.
    if (ctx_->state.compare_exchange_weak(from, static_cast<std::uint32_t>(to), std::memory_order_seq_cst))
      return true;
  }
  return false;
}

bool QueuePair::reset(InitiatorLeft left) {
  // A datagram's sender that was killed inside never leaves, and none is told from another.
  if (left == InitiatorLeft::no && !is_datagram(config_.type)) {
    ctx_->state.store(static_cast<std::uint32_t>(QpState::err), std::memory_order_seq_cst);
    flush_everything(InitiatorLeft::no);
    return false;
  }
  nic_.forget_parked(*this);
  parked_ = Park::none;
  flush_waits_for_.reset();
  dial_ = 0;
  pacer_.set(attributes_.rate);
  draining_.store(false, std::memory_order_release);
  remote_.disconnect();
  close_packets();
  if (tracer_ != nullptr) tracer_->forgotten(*this);
  // Another thread may be polling meanwhile: it finds each ring as it was, or empty.
  between_polls(config_.send_cq, [&] {
    sq_.reset();
    send_scanned_ = 0;
    kept_until_ = 0;
  });
  between_polls(config_.recv_cq, [&] { reset_receives(); });
  return true;
}

void QueuePair::reset_receives() {
  give_back_unpolled();
  flushing_ = false;
  begin_incarnation();
  rq_tail_ = rq_published_ = cqe_polled_ = 0;
  rq_polled_ = 0;
  likely_landing_ = nullptr;
  if (is_datagram(config_.type) || is_xrc()) return;
  auto* ring = nic_.segment().at<ReceiveCqe>(rings_.cqe_offset);
  for (std::uint32_t i = 0; i <= rings_.cqe_mask; ++i) ring[i].sequence.store(0, std::memory_order_relaxed);
}

// The rings begin at 0, whatever this queue pair did before a reset, or the last one of this number. An
// initiator still connected to that gets no response.
void QueuePair::begin_incarnation() {
  ++ctx_->incarnation;
  ctx_->rq_next = ctx_->cqe_next = ctx_->landing_tail = 0;
  ctx_->rq_posted_seen = ctx_->landing_head_seen = ctx_->cqe_polled_seen = 0;
  ctx_->datagram_next = 0;
  ctx_->rq_posted = ctx_->landing_head = ctx_->cqe_polled = 0;
  ctx_->initiator_parked = 0;
  ctx_->initiator_cpu = 0;
}

// Under send_lock_. Everything not yet executed and everything still posted completes as flushed
// (IBA 10.3.1): of an initiator that does not leave at once, later.
void QueuePair::enter_error() {
  ctx_->state.store(static_cast<std::uint32_t>(QpState::err), std::memory_order_seq_cst);
  flush_everything(initiator_leaves_at_once() ? InitiatorLeft::yes : InitiatorLeft::no);
}

void QueuePair::flush_everything(InitiatorLeft left) {
  parked_ = Park::none;
  dial_ = 0;
  draining_.store(false, std::memory_order_release);
  remote_.give_up_send();
  give_up_arriving();
  flush_sends();
  const std::uint32_t hazard = ctx_->hazard.load(std::memory_order_seq_cst);
  // Datagrams are scattered by our own poll, so a sender of one reaches no buffer of ours.
  if (left == InitiatorLeft::yes || (hazard & 1) == 0 || has_many_senders(config_.type)) {
    flush_waits_for_.reset();
    return flush_receives();
  }
  flush_waits_for_ = hazard;
  parked_since_ns_ = nic_.host().now_ns();
  nic_.note_parked(*this);
  try_again_by_timer();
}

// What is reported as flushed belongs to the application again (IBA 10.3.1.7): nobody may write there any
// more, nor complete it a second time.
bool QueuePair::flush_receives_once_left() {
  const bool inside = ctx_->hazard.load(std::memory_order_seq_cst) == *flush_waits_for_ &&
                      nic_.host().peer(initiator_slot_.load(std::memory_order_relaxed), HostPort::Wait::no);
  if (inside) {
    try_again_by_timer();
    return false;
  }
  flush_waits_for_.reset();
  flush_receives();
  return true;
}

void QueuePair::flush_receives() {
  if (flushing_.exchange(true, std::memory_order_seq_cst)) return;
  if (has_own_rq())
    raise_local(*config_.recv_cq, recv_line_, Solicited::yes);
  else if (config_.srq != nullptr)
    nic_.host().async_event(AsyncEvent::qp_last_wqe_reached, this, nullptr);
}

void QueuePair::on_fault(Fault fault) {
  send_lock_.lock();
  note_initiator();
  const bool news =
      state() == QpState::err && !flushing_.load(std::memory_order_relaxed) && !flush_waits_for_;
  if (news) enter_error();
  unlock_sends();
  if (news) nic_.host().async_event(event_of(fault), this, nullptr);
}

// The peer's process ended. If it had destroyed or reset its queue pair before, there is nothing to tell (a
// NIC would not notice either, until a send times out). If it was killed with the connection up, the
// connection is lost.
void QueuePair::peer_gone(Slot slot) {
  if (is_datagram(config_.type)) {
    void_datagrams_of(slot);
    return announce_unpolled();
  }
  if (initiator_slot_.load(std::memory_order_relaxed) != slot) return;
  // Killed inside an operation, it left the hazard behind; a process that takes over its slot would look as
  // if it were still inside.
  if (const std::uint32_t hazard = ctx_->hazard.load(std::memory_order_acquire); hazard & 1)
    ctx_->hazard.store(hazard + 1, std::memory_order_seq_cst);
  if (state() < QpState::rtr) return;
  send_lock_.lock();
  const bool lost = state() >= QpState::rtr && peer_gone_locked();
  unlock_sends();
  announce_unpolled();
  if (lost) nic_.host().async_event(AsyncEvent::qp_fatal, this, nullptr);
}

// A process may be killed between a completion that it wrote and the wake-up for it, so its end is one.
void QueuePair::announce_unpolled() {
  if (config_.recv_cq == nullptr || is_xrc()) return;
  {
    const std::lock_guard lock(config_.recv_cq->poll_lock());
    if ((is_datagram(config_.type) ? unpolled_datagrams() : unpolled_receives()) == 0) return;
  }
  raise_local(*config_.recv_cq, recv_line_, Solicited::yes);
}

// True: a connection that was up is lost, and no failed WQE says so.
bool QueuePair::peer_gone_locked() {
  const bool killed = remote_.connected() && remote_.answers();
  const bool acknowledged =
      config_.type == QpType::rc || (config_.type == QpType::xrc_send && !remote_.opener());
  if (parked_ != Park::none && acknowledged) {
    parked_ = Park::none;
    fail_send(sq_.at(sq_.executed.load(std::memory_order_relaxed)), WcStatus::retry_exc_err);
    return false;
  }
  if (!killed || state() == QpState::err || remote_.opener()) return false;
  enter_error();
  return true;
}

// Completions that nobody will poll any more: their receives belong to the SRQ again.
void QueuePair::give_back_unpolled() {
  if (config_.srq == nullptr) return;
  std::vector<std::uint32_t> numbers;
  append_completed(numbers);
  for (const std::uint32_t number : numbers) config_.srq->free_wqe(number);
}

void QueuePair::append_completed(std::vector<std::uint32_t>& numbers) const {
  if (is_datagram(config_.type)) return append_completed_datagrams(numbers);
  auto* ring = nic_.segment().at<ReceiveCqe>(rings_.cqe_offset);
  for (std::uint32_t count = cqe_polled_; count - cqe_polled_ <= rings_.cqe_mask; ++count) {
    if (ring[count & rings_.cqe_mask].sequence.load(std::memory_order_acquire) != count + 1) break;
    numbers.push_back(ring[count & rings_.cqe_mask].wqe);
  }
}

std::optional<std::vector<std::uint32_t>> QueuePair::receive_keys() {
  if (config_.srq != nullptr) return config_.srq->receive_keys();
  // Whoever posts receives may wait for the adapter's lock, under which we are.
  if (!has_own_rq() || has_many_senders(config_.type) || !recv_lock_.try_lock()) return std::nullopt;
  std::vector<std::uint32_t> keys;
  for (std::uint32_t at = rq_polled_.load(std::memory_order_acquire); at != rq_published_; ++at) {
    const ReceiveWqe& wqe = rq_at(at);
    const std::uint32_t pieces = std::min(wqe.num_sge, config_.caps.max_recv_sge);
    for (std::uint32_t i = 0; i < pieces; ++i) keys.push_back(wqe.sge[i].lkey);
  }
  recv_lock_.unlock();
  return keys;
}

bool QueuePair::wait_for_datagram_senders() const {
  const std::uint64_t give_up_ns = nic_.host().now_ns() + longest_delivery_ns;
  while (ctx_->datagram_senders.load(std::memory_order_seq_cst) != 0) {
    // One that was killed inside never leaves.
    if (nic_.host().now_ns() >= give_up_ns) return false;
    sched_yield();
  }
  return true;
}

// Who moved us to err is about to.
bool QueuePair::initiator_leaves_at_once() const {
  const std::uint32_t seen = ctx_->hazard.load(std::memory_order_seq_cst);
  if ((seen & 1) == 0) return true;
  for (int tries = 0; tries < 100; ++tries, cpu_relax())
    if (ctx_->hazard.load(std::memory_order_seq_cst) != seen) return true;
  return !nic_.host().peer(initiator_slot_.load(std::memory_order_relaxed), HostPort::Wait::no);
}

bool QueuePair::wait_for_initiator(std::uint64_t longest_ns) const {
  if (has_many_senders(config_.type)) return wait_for_datagram_senders();
  const std::uint32_t seen = ctx_->hazard.load(std::memory_order_seq_cst);
  if ((seen & 1) == 0) return true;
  const std::uint64_t give_up_ns = nic_.host().now_ns() + longest_ns;
  for (int tries = 0; ctx_->hazard.load(std::memory_order_seq_cst) == seen; ++tries) {
    if (tries < 100) {
      cpu_relax();
      continue;
    }
    // A killed initiator leaves its hazard odd for ever; it will not write again.
    if (!nic_.host().peer(initiator_slot_.load(std::memory_order_relaxed), HostPort::Wait::no)) return true;
    if (nic_.host().now_ns() >= give_up_ns) return false;
    sched_yield();
  }
  return true;
}

void QueuePair::kick_initiator_if_parked() {
  if (ctx_->initiator_parked.load(std::memory_order_seq_cst) == 0) return;
  if (ctx_->initiator_parked.exchange(0, std::memory_order_seq_cst) == 0) return;
  const Qpn initiator(ctx_->remote_qpn.load(std::memory_order_acquire));
  if (const PeerPtr peer = nic_.host().peer(initiator.slot(), HostPort::Wait::no)) peer->kick(initiator);
}

}  // namespace weir::rnic
