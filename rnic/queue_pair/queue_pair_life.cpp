// The life of a queue pair: modify, reset, and the error state.
#include <mutex>

#include "rnic/adapter.hpp"
#include "rnic/packet/psn.hpp"

namespace weir::rnic {
namespace {

// The limit of a wait for the initiator on a move to ERR. The move need not wait: receives are reported as
// flushed once the initiator has left.
constexpr std::uint64_t longest_wait_in_error_ns = 5'000'000;

template <class Do>
void between_polls(CompletionQueue* cq, Do what) {
  if (cq == nullptr) return what();
  const std::lock_guard lock(cq->poll_lock());
  what();
}

// IBA 11.6.3.2: the event for the responder's NAK; mlx5 raises the same events for these errors.
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

bool QueuePair::modify(QpState to, const QpAttributes& attributes) {
  const bool same_host = attributes.path.via == Via::same_host;
  if (to == QpState::rtr && !is_datagram(qp_.config.type) && same_host) {
    // Connecting may take a moment, so it happens before we take the lock and before we answer any initiator.
    nic_.host().peer(attributes.destination.slot(), HostPort::Wait::yes);
  }
  // Anyone may have connected another process's queue pair; we may have to wait for its initiator.
  if (is_anothers()) {
    initiator_.note();
    nic_.host().peer(initiator_.slot(), HostPort::Wait::yes);
  }
  const InitiatorLeft left =
      to == QpState::reset || to == QpState::err ? answer_no_more(to) : InitiatorLeft::yes;
  sends_.lock().lock();
  const bool done = modify_locked(to, attributes, left);
  unlock_sends();
  return done;
}

// Waits without the send lock, because everything from outside waits for that lock, including the news that
// the initiator was killed. Waits before the new attributes are set, because the old ones name the initiator.
QueuePair::InitiatorLeft QueuePair::answer_no_more(QpState to) {
  sends_.lock().lock();
  initiator_.note();
  qp_.ctx->state.store(static_cast<std::uint32_t>(to), std::memory_order_seq_cst);
  if (to == QpState::reset) qp_.ctx->remote_qpn.store(0, std::memory_order_seq_cst);
  unlock_sends();
  const bool left = initiator_.wait(to == QpState::err ? longest_wait_in_error_ns : longest_operation_ns);
  return left ? InitiatorLeft::yes : InitiatorLeft::no;
}

bool QueuePair::modify_locked(QpState to, const QpAttributes& attributes, InitiatorLeft left) {
  initiator_.note();
  if (to == QpState::reset && !reset(left)) return false;
  set_attributes(attributes);
  if (to == QpState::reset) return true;
  if (to == QpState::err) {
    flush_everything(left);
    return true;
  }
  if (to == QpState::init) receives_.open_slots_of_srq();
  if (to == QpState::rtr) connect();
  if (!leave_for(to)) return true;
  if (packets_.is_open()) packets_.set(to);
  requester_.send_over(packets_.unreliable_sends());
  if (to == QpState::rtr) qp_.kick_initiator_if_parked();
  if (to == QpState::rts) {
    requester_.agree();  // here rather than by the first request, which would be executed twice
    execute();
  }
  sends_.set_draining(to == QpState::sqd);
  if (to == QpState::sqd) drain();
  return true;
}

void QueuePair::set_attributes(const QpAttributes& attributes) {
  if (attributes.rate != qp_.attributes.rate) requester_.set_rate(attributes.rate);
  qp_.attributes = attributes;
  if (attributes.path.via == Via::same_host) initiator_.set_slot(attributes.destination.slot());
  const std::uint32_t depth = attributes.max_dest_rd_atomic != 0 ? access::responder_depth : 0;
  qp_.ctx->access.store(attributes.access | depth, std::memory_order_relaxed);
  qp_.ctx->qkey.store(attributes.qkey, std::memory_order_relaxed);
  qp_.ctx->terms.min_rnr_timer.store(attributes.min_rnr_timer, std::memory_order_relaxed);
  qp_.ctx->terms.receive_psn.store(packet::Psn(attributes.path.receive_psn).value(),
                                   std::memory_order_relaxed);
  qp_.ctx->terms.mtu_bytes.store(attributes.path.mtu_bytes, std::memory_order_relaxed);
}

// For the move to RTR.
void QueuePair::connect() {
  const QpAttributes& attributes = qp_.attributes;
  if (attributes.path.via == Via::packets) {
    const bool has_window = PacketSide::sends_reliably(qp_.config.type);
    initiator_.set_slot(nic_.slot());  // our own process executes what arrives
    packets_.close();                  // an XRC queue pair may have been reset by another process
    packets_.open(has_window ? nic_.packet_window(attributes.path.destination, attributes.path.process)
                             : nullptr);
    requester_.set_over_packets(true);
    polling_.begin();
  } else if (!is_datagram(qp_.config.type)) {
    qp_.ctx->remote_qpn.store(attributes.destination.value(), std::memory_order_release);
    if (qp_.config.type != QpType::xrc_recv) requester_.connect(HostPort::Wait::no);
  }
}

// Only one request is in progress at a time, and only while it is parked; with packets, many are.
void QueuePair::drain() {
  if (packets_.sends()) return execute();
  requester_.hurry(Requester::Until::begun_is_complete);
  if (!requester_.under_way()) sends_.drained();
}

// False: since the caller checked the transition, an initiator has moved us to ERR (responder.cpp). Then ERR
// holds, as if it had come right after, and on_fault() flushes.
bool QueuePair::leave_for(QpState to) {
  auto from = qp_.ctx->state.load(std::memory_order_relaxed);
  while (from != static_cast<std::uint32_t>(QpState::err)) {
    // seq_cst: an initiator that found us not ready parked and set its flag before; we read the flag right
    // after.
    if (qp_.ctx->state.compare_exchange_weak(from, static_cast<std::uint32_t>(to), std::memory_order_seq_cst))
      return true;
  }
  return false;
}

bool QueuePair::reset(InitiatorLeft left) {
  // A datagram sender that was killed inside never leaves, and senders cannot be told apart.
  if (left == InitiatorLeft::no && !is_datagram(qp_.config.type)) {
    qp_.ctx->state.store(static_cast<std::uint32_t>(QpState::err), std::memory_order_seq_cst);
    flush_everything(InitiatorLeft::no);
    return false;
  }
  nic_.forget_parked(*this);
  flush_waits_for_.reset();
  sends_.set_draining(false);
  requester_.set_rate(qp_.attributes.rate);
  requester_.reset();
  polling_.end();
  packets_.close();
  if (qp_.tracer != nullptr) qp_.tracer->forgotten(*this);
  // Another thread may be polling meanwhile: it finds each ring as it was, or empty.
  between_polls(qp_.config.send_cq, [&] { sends_.reset(); });
  between_polls(qp_.config.recv_cq, [&] {
    receives_.reset();
    begin_incarnation();
  });
  return true;
}

// The rings begin at 0, whatever this queue pair did before a reset, or the previous queue pair of this
// number did. An initiator still connected to that one gets no response.
void QueuePair::begin_incarnation() {
  ++qp_.ctx->incarnation;
  qp_.ctx->rq_next = qp_.ctx->cqe_next = qp_.ctx->landing_tail = 0;
  qp_.ctx->seen = {};
  qp_.ctx->withheld_reported = 0;
  qp_.ctx->datagram_next = 0;
  qp_.ctx->rq_posted = qp_.ctx->landing_head = qp_.ctx->cqe_polled = 0;
  qp_.ctx->initiator_parked = 0;
  qp_.ctx->initiator_cpu = 0;
}

QpAttributes QueuePair::shared_attributes() const {
  const std::uint32_t rights = qp_.ctx->access.load(std::memory_order_relaxed);
  QpAttributes attributes;
  attributes.access = rights & ~access::responder_depth;
  attributes.destination = Qpn(qp_.ctx->remote_qpn.load(std::memory_order_acquire));
  attributes.min_rnr_timer =
      static_cast<std::uint8_t>(qp_.ctx->terms.min_rnr_timer.load(std::memory_order_relaxed));
  attributes.max_dest_rd_atomic = rights & access::responder_depth ? 1 : 0;
  return attributes;
}

// ---- the error state

// If an initiator does not leave at once, receives are flushed later (IBA 10.3.1).
void QueuePair::enter_error() {
  qp_.ctx->state.store(static_cast<std::uint32_t>(QpState::err), std::memory_order_seq_cst);
  flush_everything(initiator_.leaves_at_once() ? InitiatorLeft::yes : InitiatorLeft::no);
}

void QueuePair::flush_everything(InitiatorLeft left) {
  requester_.give_up();
  sends_.set_draining(false);
  packets_.give_up_arriving();
  packets_.give_up_sending();
  sends_.flush();
  const std::uint32_t hazard = initiator_.hazard();
  // Datagrams are scattered by our own poll, so a datagram's sender reaches no buffer of ours.
  if (left == InitiatorLeft::yes || (hazard & 1) == 0 || has_many_senders(qp_.config.type)) {
    flush_waits_for_.reset();
    return receives_.flush();
  }
  flush_waits_for_ = hazard;
  flush_pauses_.begin(nic_.host().now_ns());
  pause_flush();
}

// Receives reported as flushed belong to the application again (IBA 10.3.1.7): nobody may write there any
// more, nor complete them a second time.
bool QueuePair::flush_receives_once_left() {
  if (initiator_.still_inside(*flush_waits_for_)) {
    pause_flush();
    return false;
  }
  flush_waits_for_.reset();
  receives_.flush();
  return true;
}

void QueuePair::pause_flush() {
  nic_.note_parked(*this);
  if (const auto at_ns = flush_pauses_.next(nic_.host().now_ns())) nic_.host().wake_at(*at_ns);
}

void QueuePair::on_fault(Fault fault) {
  sends_.lock().lock();
  initiator_.note();
  const bool news = state() == QpState::err && !receives_.flushing() && !flush_waits_for_;
  // The event first, so that a program that finds its receives flushed can ask why.
  if (news) nic_.host().async_event(event_of(fault), this, nullptr);
  if (news) enter_error();
  unlock_sends();
}

}  // namespace weir::rnic
