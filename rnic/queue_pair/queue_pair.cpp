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
      qp_{.nic = nic.parts(),
          .whole = *this,
          .qpn = Qpn(nic.slot(), index),
          .config = config,
          .ctx = &nic.segment().header().qps[index],
          .counters = nic.segment().header().qp_counters[index],
          .tracer = nic.tracer()},
      receive_side_(qp_),
      sq_(config.caps.max_send_wr, config.caps.max_send_sge, config.caps.max_inline) {
  QpContext& context = *qp_.ctx;
  context.state = static_cast<std::uint32_t>(QpState::reset);
  context.remote_qpn = 0;
  context.hazard = 0;  // the last initiator may have died inside an operation
  context.datagram_senders = 0;
  context.type = static_cast<std::uint16_t>(config.type);
  begin_incarnation();
  context.pd = config.pd;
  context.xrcd = config.xrcd;
  context.access = 0;
  context.srq = config.srq ? config.srq->index() + 1 : 0;
  context.recv_cq = context.cq_line = 0;
  if (!sq_.allocated() || !receive_side_.allocate()) {
    receive_side_.free();
    qp_.ctx = nullptr;
    return;
  }
  openers_ = receive_side_.openers();
  if (config.srq) config.srq->attached_qps.fetch_add(1);
  attach();
  // It has no states to go through: there is nothing to connect, and its work queues have their own.
  if (config.type == QpType::rss)
    context.state.store(static_cast<std::uint32_t>(QpState::rtr), std::memory_order_seq_cst);
}

// To the queues that it completes into.
void QueuePair::attach() {
  CompletionQueue* const receives = qp_.config.recv_cq;
  CompletionQueue* const sends = qp_.config.send_cq;
  if (receives != nullptr) {
    qp_.receives = {&receives->context(), receives->attach(this)};
    qp_.ctx->recv_cq = receives->index();
    qp_.ctx->cq_line = qp_.receives.line;
  }
  qp_.sends = qp_.receives;
  if (sends != nullptr && sends != receives) qp_.sends = {&sends->context(), sends->attach(this)};
}

QueuePair::~QueuePair() {
  if (qp_.ctx == nullptr) return;
  if (home_) {
    close_opened();
    return;
  }
  if (qp_.tracer != nullptr) qp_.tracer->forgotten(*this);
  nic_.windows().forget(qp_.qpn);
  if (qp_.config.type == QpType::ud) nic_.multicast().forget(qp_.qpn.index());
  if (qp_.config.type == QpType::raw_packet || qp_.config.type == QpType::rss)
    nic_.steering().forget(qp_.qpn.index());
  nic_.forget_parked(*this);
  if (qp_.config.recv_cq) qp_.config.recv_cq->detach(qp_.receives.line);
  if (qp_.config.send_cq && qp_.config.send_cq != qp_.config.recv_cq)
    qp_.config.send_cq->detach(qp_.sends.line);
  receive_side_.give_back_unpolled();
  remote_.disconnect();
  close_packets();
  if (qp_.config.srq) qp_.config.srq->attached_qps.fetch_sub(1);
  // What others read of one of xrc_recv they read outside of operations, too.
  if (initiator_left_ || qp_.config.type == QpType::xrc_recv)
    receive_side_.free();
  else if (qp_.config.srq)
    qp_.config.srq->keep_rings();  // as ours are lost: an initiator that wakes up may still write there
}

void QueuePair::shut() {
  note_initiator();
  qp_.ctx->state.store(static_cast<std::uint32_t>(QpState::reset), std::memory_order_seq_cst);
  qp_.ctx->remote_qpn.store(0, std::memory_order_seq_cst);
}

bool QueuePair::modify(QpState to, const QpAttributes& attributes) {
  const bool same_host = attributes.path.via == Via::same_host;
  if (to == QpState::rtr && !is_datagram(qp_.config.type) && same_host) {
    // Connecting may take a moment, so it happens before the lock and before we answer anybody.
    nic_.host().peer(attributes.destination.slot(), HostPort::Wait::yes);
  }
  // Whoever connected another process's queue pair, we may have to wait for its initiator.
  if (home_) nic_.host().peer(Qpn(qp_.ctx->remote_qpn.load()).slot(), HostPort::Wait::yes);
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
  qp_.ctx->state.store(static_cast<std::uint32_t>(to), std::memory_order_seq_cst);
  if (to == QpState::reset) qp_.ctx->remote_qpn.store(0, std::memory_order_seq_cst);
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
  qp_.ctx->access.store(
      attributes.access | (attributes.max_dest_rd_atomic != 0 ? access::responder_depth : 0),
      std::memory_order_relaxed);
  qp_.ctx->qkey.store(attributes.qkey, std::memory_order_relaxed);
  qp_.ctx->min_rnr_timer.store(attributes.min_rnr_timer, std::memory_order_relaxed);
  if (to == QpState::reset) return true;
  if (to == QpState::err) {
    flush_everything(left);
    return true;
  }
  if (to == QpState::init) receive_side_.open_slots_of_srq();
  if (to == QpState::rtr && attributes.path.via == Via::packets) {
    open_packets();
  } else if (to == QpState::rtr && !is_datagram(qp_.config.type)) {
    qp_.ctx->remote_qpn.store(attributes.destination.value(), std::memory_order_release);
    if (qp_.config.type != QpType::xrc_recv) connect_remote(HostPort::Wait::no);
  }
  if (!leave_for(to)) return true;
  if (packets_ != nullptr) set_packets(to);
  if (to == QpState::rtr) qp_.kick_initiator_if_parked();
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
  auto from = qp_.ctx->state.load(std::memory_order_relaxed);
  while (from != static_cast<std::uint32_t>(QpState::err)) {
    // seq_cst: an initiator that found us not ready has parked and set its flag before; we look at it right
    // after.
    if (qp_.ctx->state.compare_exchange_weak(from, static_cast<std::uint32_t>(to), std::memory_order_seq_cst))
      return true;
  }
  return false;
}

bool QueuePair::reset(InitiatorLeft left) {
  // A datagram's sender that was killed inside never leaves, and none is told from another.
  if (left == InitiatorLeft::no && !is_datagram(qp_.config.type)) {
    qp_.ctx->state.store(static_cast<std::uint32_t>(QpState::err), std::memory_order_seq_cst);
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
  if (qp_.tracer != nullptr) qp_.tracer->forgotten(*this);
  // Another thread may be polling meanwhile: it finds each ring as it was, or empty.
  between_polls(qp_.config.send_cq, [&] {
    sq_.reset();
    send_scanned_ = 0;
    kept_until_ = 0;
  });
  between_polls(qp_.config.recv_cq, [&] {
    receive_side_.reset();
    begin_incarnation();
  });
  return true;
}

// The rings begin at 0, whatever this queue pair did before a reset, or the last one of this number. An
// initiator still connected to that gets no response.
void QueuePair::begin_incarnation() {
  ++qp_.ctx->incarnation;
  qp_.ctx->rq_next = qp_.ctx->cqe_next = qp_.ctx->landing_tail = 0;
  qp_.ctx->rq_posted_seen = qp_.ctx->landing_head_seen = qp_.ctx->cqe_polled_seen = 0;
  qp_.ctx->datagram_next = 0;
  qp_.ctx->rq_posted = qp_.ctx->landing_head = qp_.ctx->cqe_polled = 0;
  qp_.ctx->initiator_parked = 0;
  qp_.ctx->initiator_cpu = 0;
}

// Under send_lock_. Everything not yet executed and everything still posted completes as flushed
// (IBA 10.3.1): of an initiator that does not leave at once, later.
void QueuePair::enter_error() {
  qp_.ctx->state.store(static_cast<std::uint32_t>(QpState::err), std::memory_order_seq_cst);
  flush_everything(initiator_leaves_at_once() ? InitiatorLeft::yes : InitiatorLeft::no);
}

void QueuePair::flush_everything(InitiatorLeft left) {
  parked_ = Park::none;
  dial_ = 0;
  draining_.store(false, std::memory_order_release);
  remote_.give_up_send();
  give_up_arriving();
  flush_sends();
  const std::uint32_t hazard = qp_.ctx->hazard.load(std::memory_order_seq_cst);
  // Datagrams are scattered by our own poll, so a sender of one reaches no buffer of ours.
  if (left == InitiatorLeft::yes || (hazard & 1) == 0 || has_many_senders(qp_.config.type)) {
    flush_waits_for_.reset();
    return receive_side_.flush();
  }
  flush_waits_for_ = hazard;
  parked_since_ns_ = nic_.host().now_ns();
  nic_.note_parked(*this);
  try_again_by_timer();
}

// What is reported as flushed belongs to the application again (IBA 10.3.1.7): nobody may write there any
// more, nor complete it a second time.
bool QueuePair::flush_receives_once_left() {
  const bool inside = qp_.ctx->hazard.load(std::memory_order_seq_cst) == *flush_waits_for_ &&
                      nic_.host().peer(initiator_slot_.load(std::memory_order_relaxed), HostPort::Wait::no);
  if (inside) {
    try_again_by_timer();
    return false;
  }
  flush_waits_for_.reset();
  receive_side_.flush();
  return true;
}

void QueuePair::on_fault(Fault fault) {
  send_lock_.lock();
  note_initiator();
  const bool news = state() == QpState::err && !receive_side_.flushing() && !flush_waits_for_;
  if (news) enter_error();
  unlock_sends();
  if (news) nic_.host().async_event(event_of(fault), this, nullptr);
}

// The peer's process ended. If it had destroyed or reset its queue pair before, there is nothing to tell (a
// NIC would not notice either, until a send times out). If it was killed with the connection up, the
// connection is lost.
void QueuePair::peer_gone(Slot slot) {
  if (is_datagram(qp_.config.type)) {
    receive_side_.void_claims_of(slot);
    return announce_unpolled();
  }
  if (initiator_slot_.load(std::memory_order_relaxed) != slot) return;
  // Killed inside an operation, it left the hazard behind; a process that takes over its slot would look as
  // if it were still inside.
  if (const std::uint32_t hazard = qp_.ctx->hazard.load(std::memory_order_acquire); hazard & 1)
    qp_.ctx->hazard.store(hazard + 1, std::memory_order_seq_cst);
  if (state() < QpState::rtr) return;
  send_lock_.lock();
  const bool lost = state() >= QpState::rtr && peer_gone_locked();
  unlock_sends();
  announce_unpolled();
  if (lost) nic_.host().async_event(AsyncEvent::qp_fatal, this, nullptr);
}

void QueuePair::announce_unpolled() {
  if (qp_.config.recv_cq != nullptr && !qp_.config.is_xrc())
    receive_side_.announce_unpolled(qp_.config.recv_cq->poll_lock());
}

// True: a connection that was up is lost, and no failed WQE says so.
bool QueuePair::peer_gone_locked() {
  const bool killed = remote_.connected() && remote_.answers();
  const bool acknowledged =
      qp_.config.type == QpType::rc || (qp_.config.type == QpType::xrc_send && !remote_.opener());
  if (parked_ != Park::none && acknowledged) {
    parked_ = Park::none;
    fail_send(sq_.at(sq_.executed.load(std::memory_order_relaxed)), WcStatus::retry_exc_err);
    return false;
  }
  if (!killed || state() == QpState::err || remote_.opener()) return false;
  enter_error();
  return true;
}

bool QueuePair::wait_for_datagram_senders() const {
  const std::uint64_t give_up_ns = nic_.host().now_ns() + longest_delivery_ns;
  while (qp_.ctx->datagram_senders.load(std::memory_order_seq_cst) != 0) {
    // One that was killed inside never leaves.
    if (nic_.host().now_ns() >= give_up_ns) return false;
    sched_yield();
  }
  return true;
}

// Who moved us to err is about to.
bool QueuePair::initiator_leaves_at_once() const {
  const std::uint32_t seen = qp_.ctx->hazard.load(std::memory_order_seq_cst);
  if ((seen & 1) == 0) return true;
  for (int tries = 0; tries < 100; ++tries, cpu_relax())
    if (qp_.ctx->hazard.load(std::memory_order_seq_cst) != seen) return true;
  return !nic_.host().peer(initiator_slot_.load(std::memory_order_relaxed), HostPort::Wait::no);
}

bool QueuePair::wait_for_initiator(std::uint64_t longest_ns) const {
  if (has_many_senders(qp_.config.type)) return wait_for_datagram_senders();
  const std::uint32_t seen = qp_.ctx->hazard.load(std::memory_order_seq_cst);
  if ((seen & 1) == 0) return true;
  const std::uint64_t give_up_ns = nic_.host().now_ns() + longest_ns;
  for (int tries = 0; qp_.ctx->hazard.load(std::memory_order_seq_cst) == seen; ++tries) {
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

}  // namespace weir::rnic
