#include "rnic/queue_pair/queue_pair.hpp"

#include <mutex>
#include <utility>

#include "rnic/adapter.hpp"

namespace weir::rnic {
namespace {

QpConfig xrc_recv_config(std::uint64_t xrcd) {
  QpConfig config;
  config.type = QpType::xrc_recv;
  config.xrcd = xrcd;
  return config;
}

}  // namespace

QueuePair::QueuePair(Adapter& nic, std::uint32_t index, const QpConfig& config)
    : nic_(nic),
      qp_{.nic = nic.parts(),
          .whole = *this,
          .queue_pair = *this,
          .qpn = Qpn(nic.slot(), index),
          .config = config,
          .ctx = &nic.segment().header().qps[index],
          .counters = nic.segment().header().qp_counters[index],
          .tracer = nic.tracer(),
          .weak = nic.weak()},
      openers_(qp_),
      initiator_(qp_),
      polling_(qp_),
      receives_(qp_),
      sends_(qp_),
      requester_(qp_, sends_, receives_, polling_),
      packets_(qp_, sends_) {
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
  if (!sends_.allocated() || !receives_.allocate()) {
    receives_.free();
    qp_.ctx = nullptr;
    return;
  }
  openers_.list_at(receives_.openers());
  if (config.srq) config.srq->attached_qps.fetch_add(1);
  attach();
  // Type rss has no state transitions: there is nothing to connect, and its work queues have their own.
  if (config.type == QpType::rss)
    context.state.store(static_cast<std::uint32_t>(QpState::rtr), std::memory_order_seq_cst);
}

QueuePair::QueuePair(Adapter& nic, PeerPtr home, Qpn number, std::uint64_t xrcd)
    : nic_(nic),
      qp_{.nic = nic.parts(),
          .whole = *this,
          .queue_pair = *this,
          .qpn = number,
          .config = xrc_recv_config(xrcd),
          .ctx = nullptr,
          .counters = home->segment().qp_counters[number.index()],
          .tracer = nic.tracer(),
          .weak = nic.weak()},
      openers_(qp_, std::move(home)),
      initiator_(qp_),
      polling_(qp_),
      receives_(qp_),
      sends_(qp_),
      requester_(qp_, sends_, receives_, polling_),
      packets_(qp_, sends_) {
  qp_.ctx = openers_.open(number, xrcd);
  if (qp_.ctx != nullptr) initiator_.note();
}

// Attaches this queue pair to its completion queues.
void QueuePair::attach() {
  const auto place_in = [this](CompletionQueue& cq) {
    return CqPlace{&cq.context(), cq.attach(this), &cq.on_packets};
  };
  CompletionQueue* const receives = qp_.config.recv_cq;
  CompletionQueue* const sends = qp_.config.send_cq;
  if (receives != nullptr) {
    qp_.receives = place_in(*receives);
    qp_.ctx->recv_cq = receives->index();
    qp_.ctx->cq_line = qp_.receives.line;
  }
  if (qp_.config.type == QpType::xrc_recv) qp_.receives.on_packets = &nic_.xrc_on_packets();
  qp_.sends = qp_.receives;
  if (sends != nullptr && sends != receives) qp_.sends = place_in(*sends);
}

QueuePair::~QueuePair() {
  if (qp_.ctx == nullptr) return;
  if (is_anothers()) {
    openers_.close();
    return;
  }
  const QpConfig& config = qp_.config;
  if (qp_.tracer != nullptr) qp_.tracer->forgotten(*this);
  nic_.windows().forget(qp_.qpn);
  if (config.type == QpType::ud) nic_.multicast().forget(qp_.qpn.index());
  if (config.type == QpType::raw_packet || config.type == QpType::rss)
    nic_.steering().forget(qp_.qpn.index());
  nic_.forget_parked(*this);
  if (config.recv_cq) config.recv_cq->detach(qp_.receives.line);
  if (config.send_cq && config.send_cq != config.recv_cq) config.send_cq->detach(qp_.sends.line);
  receives_.give_back_unpolled();
  requester_.reset();
  polling_.end();
  packets_.close();
  if (config.srq) config.srq->attached_qps.fetch_sub(1);
  // An xrc_recv queue pair's context is read by others outside of operations, too.
  if (initiator_left_ || config.type == QpType::xrc_recv)
    receives_.free();
  else if (config.srq)
    config.srq->keep_rings();  // lost like ours: an initiator that wakes up may still write there
}

void QueuePair::shut() {
  initiator_.note();
  qp_.ctx->state.store(static_cast<std::uint32_t>(QpState::reset), std::memory_order_seq_cst);
  qp_.ctx->remote_qpn.store(0, std::memory_order_seq_cst);
}

// ---- posting and polling

void QueuePair::abort_posting() {
  sends_.retract_all();
  unlock_sends();
}

void QueuePair::ring_doorbell() {
  sends_.publish();
  const Cpu cpu = current_cpu();
  requester_.set_cpu(cpu);
  execute();
  sends_.prefetch_next();
  const bool gives_way = cpu != 0 && initiator_.on(cpu) && requester_.gives_way();
  const bool packets = packets_.sends();
  unlock_sends();
  if (packets) nic_.departures().here().posted();
  if (gives_way) ::sched_yield();
}

// Under the send lock.
void QueuePair::execute() {
  if (!packets_.sends()) return requester_.execute();
  packets_.execute();
  if (packets_.others_may_send()) qp_.nic.host.wake_at(qp_.nic.host.now_ns());
}

// Sends first, except in a call after one whose array they filled: otherwise a program that posts a send for
// each completed one would never hear of arrivals, and post no receives.
std::size_t QueuePair::poll_completions(CompletionQueue& cq, std::span<WorkCompletion> out) {
  std::size_t filled = 0;
  const auto poll_arrived = [&] {
    if (&cq == qp_.config.recv_cq && filled != out.size()) filled += receives_.poll(out.subspan(filled));
  };
  const bool one_cq = qp_.config.send_cq == qp_.config.recv_cq;  // else its polls are under two locks
  const bool arrived_first = one_cq && std::exchange(sends_filled_, false);
  if (arrived_first) poll_arrived();
  if (&cq == qp_.config.send_cq) {
    const std::size_t sent = sends_.poll(out.subspan(filled));
    if (sent != 0) qp_.counters.send_completions.add(sent);
    filled += sent;
    if (one_cq) sends_filled_ = sent != 0 && filled == out.size() && !arrived_first;
  }
  if (!arrived_first) poll_arrived();
  return filled;
}

std::size_t QueuePair::unpolled(const CompletionQueue& cq) const {
  const std::size_t sent = &cq == qp_.config.send_cq ? sends_.unpolled() : 0;
  return sent + (&cq == qp_.config.recv_cq ? receives_.unpolled() : 0);
}

// ---- what waits

// Never waits for the send lock: its holder may be the application between ibv_wr_start and ibv_wr_complete.
// The holder then continues in our place; otherwise a kick would be lost and the queue stay parked for ever.
bool QueuePair::resume() {
  resume_wanted_.store(true, std::memory_order_seq_cst);  // see SpinLock::unlock_and_look()
  if (!sends_.lock().try_lock()) return true;
  resume_wanted_.store(false, std::memory_order_relaxed);
  const bool turn = turn_given_.exchange(false, std::memory_order_relaxed);
  if (packets_.is_open()) packets_.resume(turn ? PacketSide::Turn::yes : PacketSide::Turn::no);
  requester_.resume();
  const bool flushes_later = flush_waits_for_ && !flush_receives_once_left();
  const bool still = requester_.parked() || flushes_later;
  unlock_sends();
  return still;
}

void QueuePair::unlock_sends() {
  SpinLock& lock = sends_.lock();
  const bool nothing_to_resume = !requester_.parked() && !flush_waits_for_ && !packets_.is_open();
  if (nothing_to_resume) return lock.unlock();
  lock.unlock_and_look();
  if (!resume_wanted_.load(std::memory_order_seq_cst)) return;
  (void)resume();
  if (const auto window = packet_window(); window != nullptr && window->lets_somebody_send())
    nic_.host().wake_at(nic_.host().now_ns());
}

// The holder of the send lock takes it for us, if it is held.
void QueuePair::take_turn() {
  turn_given_.store(true, std::memory_order_relaxed);
  (void)resume();
}

std::shared_ptr<SharedWindow> QueuePair::packet_window() {
  const std::shared_ptr<PacketPath> path = packets_.current();
  return path != nullptr ? path->window : nullptr;
}

void QueuePair::hurry() {
  if (!sends_.lock().lock_soon()) return;
  requester_.hurry(Requester::Until::all_is_complete);
  unlock_sends();
}

void QueuePair::note_parked() { nic_.note_parked(*this); }
void QueuePair::resume_at(std::uint64_t deadline_ns) { nic_.resume_at(deadline_ns, *this); }
void QueuePair::wait_for_initiators() const { (void)nic_.wait_for_initiators(); }

// ---- packets

// Not under the send lock. The caller has checked that the packet is intact and addressed to us.
std::optional<Dropped> QueuePair::refusal_of(const ArrivedPacket& arrived) {
  if (qp_.config.type != QpType::ud) return packets_.refusal_of(arrived);
  const bool fits = arrived.packet.deth.qkey == qp_.ctx->qkey.load(std::memory_order_relaxed);
  return fits ? std::nullopt : std::optional(Dropped::wrong_qkey);
}

void QueuePair::receive_packet(const ArrivedPacket& arrived) {
  qp_.counters.packets_in.add(1);
  if (qp_.config.type == QpType::ud) {
    polling_.begin();
    return receive_datagram(qp_, arrived);
  }
  const std::shared_ptr<PacketPath> answered = packets_.receive(arrived);
  if (answered == nullptr) return;
  // The lock's holder may be the application between ibv_wr_start and ibv_wr_complete. A packet dropped for
  // that is a lost packet like any other.
  if (!sends_.lock().lock_soon()) return qp_.counters.requests_dropped.add(1);
  if (packets_.is_current(answered)) packets_.receive_answer(arrived);
  unlock_sends();
}

// After a batch of arrived packets: sends its answers, and the packets that they let go.
void QueuePair::answer_packets() {
  const std::shared_ptr<PacketPath> path = packets_.current();
  if (path == nullptr) return;
  packets_.answer(*path);
  if (!sends_.lock().lock_soon()) {
    (void)resume();  // the thread that holds the lock resumes afterwards
    return;
  }
  if (packets_.is_current(path)) packets_.execute();
  unlock_sends();
}

// ---- the end of the peer

// The peer's process ended. If it had destroyed or reset its queue pair before, there is nothing to report (a
// NIC would not notice either, until a send times out). If it was killed with the connection up, the
// connection is lost.
void QueuePair::peer_gone(Slot slot) {
  if (is_datagram(qp_.config.type)) {
    receives_.void_claims_of(slot);
    return announce_unpolled();
  }
  if (initiator_.slot() != slot) return;
  initiator_.end_operation();
  if (state() < QpState::rtr) return;
  sends_.lock().lock();
  const bool lost = state() >= QpState::rtr && peer_gone_locked();
  unlock_sends();
  announce_unpolled();
  if (lost) nic_.host().async_event(AsyncEvent::qp_fatal, this, nullptr);
}

// True: a connection that was up is lost, and no failed WQE reports it.
bool QueuePair::peer_gone_locked() {
  const bool killed = requester_.target_answers();
  const bool kept = requester_.target_has_opener();
  const QpType type = qp_.config.type;
  const bool acknowledged = type == QpType::rc || (type == QpType::xrc_send && !kept);
  if (acknowledged && requester_.fail_parked()) return false;
  if (!killed || state() == QpState::err || kept) return false;
  enter_error();
  return true;
}

// The process of another user that we were connected to ended.
void QueuePair::process_gone(std::uint64_t process) {
  // As on hardware nothing ends an unreliable connection: a peer that is done may leave before its last
  // message is polled.
  if (!is_reliable(qp_.config.type)) return;
  const std::shared_ptr<PacketPath> path = packets_.current();
  if (path == nullptr || path->route.process != process) return;
  sends_.lock().lock();
  bool lost = false;
  if (packets_.is_current(path) && state() >= QpState::rtr && state() != QpState::err) {
    packets_.peer_gone();
    lost = state() != QpState::err;  // nothing was outstanding, so no failed WQE says it
    if (lost) enter_error();
  }
  unlock_sends();
  announce_unpolled();
  if (lost) nic_.host().async_event(AsyncEvent::qp_fatal, this, nullptr);
}

void QueuePair::initiator_gone(Slot slot) {
  if (openers_.home()->alive()) return;
  initiator_.note();
  peer_gone(slot);
}

void QueuePair::announce_unpolled() {
  if (qp_.config.recv_cq != nullptr && !qp_.config.is_xrc())
    receives_.announce_unpolled(qp_.config.recv_cq->poll_lock());
}

}  // namespace weir::rnic
