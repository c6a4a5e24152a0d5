// The requester: executes a queue pair's send WQEs in order, in the thread that rang the doorbell.
//
// One WQE at a time: gather its local pieces (checking lkeys), let the responder's role act on the target,
// and turn the outcome into a completion. Three outcomes do not complete but park the queue: receiver not
// ready (RNR), no response (the target queue pair is not connected to us, or not yet), and late (the target's
// process has not come to copying, decision 0006). A parked queue is tried again when the target kicks us,
// when the application polls, and by timer; its budget is rnr_retry x RNR timer, or retry_cnt x timeout. Late
// has none: on a wire the target's NIC would have answered, whatever its process does.
#include <array>
#include <cstring>
#include <utility>

#include "rnic/adapter.hpp"
#include "rnic/queue_pair.hpp"

namespace weir::rnic {
namespace {

// RNR NAK timer field in 10 us (IBA table 45); index 0 is the longest.
constexpr std::array<std::uint32_t, 32> rnr_timer_10us = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr std::uint8_t rnr_retry_for_ever = 7;
constexpr std::uint32_t min_rnr_spin = 2;
constexpr std::uint32_t max_rnr_spin = 100;

WcStatus requester_status(Outcome nak) {
  switch (nak) {
    case Outcome::nak_access:
      return WcStatus::rem_access_err;
    case Outcome::nak_invalid:
      return WcStatus::rem_inv_req_err;
    default:
      return WcStatus::rem_op_err;
  }
}

Arrival arrival_of(const SendWqe& wqe, std::uint64_t bytes) {
  Arrival arrival;
  const bool write = wqe.opcode == SendOpcode::rdma_write_with_imm;
  arrival.opcode = write ? WcOpcode::recv_rdma_with_imm : WcOpcode::recv;
  arrival.byte_len = bytes;
  if (write || wqe.opcode == SendOpcode::send_with_imm)
    arrival.carries = Carries::immediate;
  else if (wqe.opcode == SendOpcode::send_with_invalidate)
    arrival.carries = Carries::invalidate;
  arrival.imm_be = wqe.imm_be;
  arrival.solicited = wqe.solicited;
  return arrival;
}

}  // namespace

void QueuePair::execute() {
  for (std::uint32_t next = sq_.executed.load(std::memory_order_relaxed); next != sq_.doorbell;
       next = sq_.executed.load(std::memory_order_relaxed)) {
    const QpState now_in = state();
    SendWqe& wqe = sq_.at(next);
    if (now_in != QpState::rts) {
      if (now_in == QpState::sqe) return flush_sends();
      if (now_in == QpState::err) return fail_send(wqe, WcStatus::wr_flush_err);
      // What sqd finds under way goes on; what is behind it waits for rts.
      if (now_in != QpState::sqd || parked_ == Park::none) return;
    }
    const Outcome outcome = execute_one(wqe);
    switch (outcome) {
      case Outcome::done:
        parked_ = Park::none;
        counters_.count_done(remote_.counters(), wqe.opcode, wqe.byte_len);
        complete_send(wqe, WcStatus::success);
        note_likely_next();
        if (now_in == QpState::sqd) return drained();
        break;
      case Outcome::rnr:
        if (!receive_comes_soon() && !park(Park::rnr)) return;
        break;
      case Outcome::no_response:
        if (!reconnect_if_stale() && !park(Park::no_response)) return;
        break;
      case Outcome::late:
        if (!park(Park::late)) return;
        break;
      case Outcome::connecting:
        keep_addresses();
        if (!park_until_connected()) return;
        break;
      default:
        if (config_.type == QpType::uc && wqe.status == WcStatus::success) {  // no acknowledgement says so
          counters_.count_done(nullptr, wqe.opcode, wqe.byte_len);
          complete_send(wqe, WcStatus::success);
          break;
        }
        fail_send(wqe, wqe.status != WcStatus::success ? wqe.status : requester_status(outcome));
        return;
    }
  }
}

Outcome QueuePair::execute_one(SendWqe& wqe) {
  if (wqe.opcode == SendOpcode::local_invalidate || wqe.opcode == SendOpcode::bind_window)
    return execute_local(wqe);
  Gather pieces;
  // READ and the atomics: data comes back.
  const bool reads = wqe.opcode >= SendOpcode::rdma_read && wqe.opcode <= SendOpcode::fetch_and_add;
  const auto use = reads ? ProtectionTable::Use::write : ProtectionTable::Use::read;
  if (const auto error = gather(wqe, pieces, use)) {
    wqe.status = *error;
    return Outcome::nak_operational;
  }
  if (reads) {
    if (const auto error = check_reader(wqe, pieces)) {
      wqe.status = *error;
      return Outcome::nak_operational;
    }
  }
  if (wqe.opcode == SendOpcode::atomic_write && pieces.bytes != atomic_bytes) {  // neither more nor less
    wqe.status = WcStatus::loc_len_err;
    return Outcome::nak_operational;
  }
  wqe.byte_len = static_cast<std::uint32_t>(pieces.bytes);
  if (config_.type == QpType::ud) return execute_datagram(wqe, pieces);
  if (config_.type == QpType::raw_packet) return execute_frame(wqe, pieces);

  if (!remote_.connected()) connect_remote(HostPort::Wait::no);
  if (!remote_.connected() || !remote_.peer->alive()) return Outcome::no_response;
  if (config_.type == QpType::xrc_send) {
    const Outcome selected = remote_.select_srq(Qpn(wqe.remote_srqn));
    if (selected != Outcome::done) return selected;
  }
  switch (wqe.opcode) {
    case SendOpcode::rdma_write:
      return remote_.rdma_write(pieces, wqe.remote_addr, wqe.rkey);
    case SendOpcode::rdma_write_with_imm:
      return remote_.rdma_write_with_imm(pieces, wqe.remote_addr, wqe.rkey, arrival_of(wqe, pieces.bytes));
    case SendOpcode::rdma_read:
      return remote_.rdma_read(pieces, wqe.remote_addr, wqe.rkey);
    case SendOpcode::compare_and_swap:
    case SendOpcode::fetch_and_add:
      return remote_.atomic(wqe.opcode, wqe.atomic, pieces, wqe.remote_addr, wqe.rkey);
    case SendOpcode::atomic_write:
      return remote_.atomic_write(pieces, wqe.remote_addr, wqe.rkey);
    default:
      return remote_.send(pieces, arrival_of(wqe, pieces.bytes));
  }
}

// Local protection check (IBA 10.2.3): an sge outside its region, or a READ into memory without LOCAL_WRITE.
std::optional<WcStatus> QueuePair::gather(SendWqe& wqe, Gather& out, ProtectionTable::Use use) const {
  if (wqe.inlined) {
    out.pieces[0] = {wqe.inline_data(), wqe.inline_bytes};
    out.count = wqe.inline_bytes != 0 ? 1 : 0;
    out.bytes = wqe.inline_bytes;
    return std::nullopt;
  }
  const ProtectionTable& table = nic_.table();
  for (std::uint32_t i = 0; i < wqe.num_sge; ++i) {
    const Sge& sge = wqe.sges()[i];
    if (sge.length == 0) continue;
    if (!table.allows(sge, config_.pd, use)) return WcStatus::loc_prot_err;
    const TptEntry& entry = table.entry(sge.lkey);
    void* const at = ProtectionTable::address(entry, sge.addr, use);
    if ((entry.access & access::on_demand) && !nic_.host().fault_in(at, sge.length, use))
      return WcStatus::loc_prot_err;
    out.pieces[out.count++] = {at, sge.length};
    out.bytes += sge.length;
  }
  return out.bytes > max_message_bytes ? std::optional(WcStatus::loc_len_err) : std::nullopt;
}

// The memory management operations touch only our own table. What an initiator may still be doing under the
// old key is over when they complete (IBA 10.6.7.2).
Outcome QueuePair::execute_local(SendWqe& wqe) {
  const bool done = wqe.opcode == SendOpcode::bind_window
                        ? nic_.windows().bind({.key = wqe.rkey,
                                               .lkey = wqe.binding.lkey,
                                               .access = wqe.binding.access,
                                               .addr = wqe.remote_addr,
                                               .length = wqe.binding.length},
                                              qpn_, config_.pd)
                        : nic_.windows().invalidate(wqe.imm_be, qpn_);
  if (!done) {
    wqe.status = WcStatus::mw_bind_err;
    return Outcome::nak_operational;
  }
  nic_.wait_for_initiators();
  return Outcome::done;
}

// What only requests have to whose answer carries data: an initiator depth (IBA 10.2.5: with none, it can
// have no READ or atomic outstanding), and for atomics room for the eight bytes that come back.
std::optional<WcStatus> QueuePair::check_reader(const SendWqe& wqe, Gather& into) const {
  if (attributes_.max_rd_atomic == 0) return WcStatus::loc_qp_op_err;
  if (wqe.opcode == SendOpcode::rdma_read) return std::nullopt;
  if (into.bytes < atomic_bytes) return WcStatus::loc_len_err;
  into.bytes = atomic_bytes;
  return std::nullopt;
}

// A receiver that is merely a little slower than us posts its next receive within a microsecond or two.
// Waiting for that costs less than parking, which makes the receiver kick us through the kernel. Adaptive:
// where the receiver shares our CPU, or is asleep, waiting never pays, and the spin shrinks to next to
// nothing.
bool QueuePair::receive_comes_soon() {
  if (parked_ != Park::none || config_.type == QpType::uc) return false;
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
  const bool peer_dead = remote_.connected() && !remote_.peer->alive();
  // Unreliable: what cannot be delivered is lost, silently.
  if (config_.type == QpType::uc && (why != Park::late || peer_dead)) {
    parked_ = Park::none;
    counters_.count_done(nullptr, wqe.opcode, wqe.byte_len);
    complete_send(wqe, WcStatus::success);
    if (state() == QpState::sqd) drained();
    return true;
  }
  const std::optional<std::uint64_t> budget = budget_ns(why);
  if (parked_ != why) {
    parked_ = why;
    (why == Park::rnr ? counters_.rnrs : counters_.no_responses).add(1);
    if (tracer_ != nullptr)
      tracer_->parked(*this, wqe, why == Park::rnr ? Tracer::WaitsFor::receive : Tracer::WaitsFor::answer,
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
  if (announced_ || !remote_.connected()) return false;
  remote_.announce_parked();
  announced_ = true;
  return true;  // one more look, now that the target knows that we wait
}

// The next datagrams wait behind it, as completions come in order; who posts them does not. True: look once
// more, because it may have been decided before anybody could know that we wait.
bool QueuePair::park_until_connected() {
  if (std::exchange(parked_, Park::connecting) == Park::connecting) return false;
  nic_.note_parked(*this);
  return true;
}

// What a WQE says of its destination is in the address handle, which a program may destroy when it has posted
// (mckey does).
void QueuePair::keep_addresses() {
  if (config_.type != QpType::ud) return;
  const std::uint32_t executed = sq_.executed.load(std::memory_order_relaxed);
  if (static_cast<std::int32_t>(kept_until_ - executed) <= 0) {
    kept_grhs_.clear();
    kept_until_ = executed;
  }
  for (; kept_until_ != sq_.doorbell; ++kept_until_) {
    DatagramAddress& address = sq_.at(kept_until_).datagram;
    if (address.grh == nullptr) continue;
    auto& kept = kept_grhs_.emplace_back();
    const bool to_group = address.destination == multicast_destination;
    std::memcpy(kept.data(), address.grh, grh_bytes + (to_group ? sizeof(Gid) : 0));
    address.grh = kept.data();
  }
}

std::optional<std::uint64_t> QueuePair::budget_ns(Park why) const {
  if (why == Park::rnr) {
    if (attributes_.rnr_retry == rnr_retry_for_ever) return std::nullopt;
    const std::uint32_t timer = remote_.target_min_rnr_timer() & 31;
    return std::uint64_t{rnr_timer_10us[timer]} * 10'000 * attributes_.rnr_retry;
  }
  if (why == Park::late || attributes_.timeout == 0) return std::nullopt;
  return (4096ull << (attributes_.timeout & 31)) * (attributes_.retry_cnt + 1u);
}

// Never waits for the send lock: its holder may be the application between ibv_wr_start and ibv_wr_complete.
// Then the holder goes on in our place, or a kick would be lost and the queue stay parked for ever.
bool QueuePair::resume() {
  resume_wanted_.store(true, std::memory_order_seq_cst);  // see SpinLock::unlock_and_look()
  if (!send_lock_.try_lock()) return true;
  resume_wanted_.store(false, std::memory_order_relaxed);
  announced_ = false;  // a kick took the flag with it
  if (parked_ != Park::none) {
    if (parked_ != Park::connecting) counters_.retries.add(1);
    execute();
  }
  const bool still = parked_ != Park::none;
  unlock_sends();
  return still;
}

void QueuePair::unlock_sends() {
  if (parked_ == Park::none) return send_lock_.unlock();  // nothing that a kick could be for
  send_lock_.unlock_and_look();
  if (resume_wanted_.load(std::memory_order_seq_cst)) (void)resume();
}

void QueuePair::complete_send(SendWqe& wqe, WcStatus status) {
  if (tracer_ != nullptr) tracer_->finished(*this, wqe, status);
  wqe.status = status;
  const bool reported = wqe.signaled || status != WcStatus::success;
  if (status != WcStatus::success) counters_.count_failed(status);
  // release, or more: the poller's acquire of `executed` must see status and byte_len. One writer, under the
  // send lock.
  const std::uint32_t executed = sq_.executed.load(std::memory_order_relaxed) + 1;
  if (!reported) return sq_.executed.store(executed, std::memory_order_release);
  publish_completion(sq_.executed, executed, config_.send_cq->context());
  raise_local(*config_.send_cq, send_line_, status == WcStatus::success ? Solicited::no : Solicited::yes);
}

// For the poller, which sees a request arrive before the application answers it.
void QueuePair::note_likely_next() {
  if (!remote_.connected()) return;
  likely_cqe_.store(remote_.likely_cqe(), std::memory_order_relaxed);
  likely_write_.store(remote_.likely_write(), std::memory_order_relaxed);
}

// Two programs on one CPU that answer each other's WRITEs and wait by watching their memory make no call by
// which either could give the CPU away, and each turn would cost the rest of a time slice. So it is given
// away behind the WRITE: if nothing else is outstanding, and once for each time that the peer did something
// itself.
bool QueuePair::peer_waits_for(Cpu cpu) {
  if (cpu == 0 || !initiator_on(cpu)) return false;
  if (sq_.doorbell - sq_.polled.load(std::memory_order_relaxed) != 1 || parked_ != Park::none) return false;
  if (sq_.at(sq_.doorbell - 1).opcode != SendOpcode::rdma_write) return false;
  const std::uint32_t operations = ctx_->hazard.load(std::memory_order_relaxed);
  return operations != std::exchange(answered_, operations);
}

// A failed WQE stops the queue: it completes with its error, everything behind it is flushed. Of a connection
// that acknowledges nothing the receive queue goes on, and modify brings the send queue back (IBA 10.3.1.7).
void QueuePair::fail_send(SendWqe& wqe, WcStatus status) {
  complete_send(wqe, status);
  const bool unreliable = config_.type == QpType::uc || is_datagram(config_.type);
  const QpState in = state();
  if (!unreliable || (in != QpState::rts && in != QpState::sqd)) return enter_error();
  parked_ = Park::none;
  dial_ = 0;
  draining_.store(false, std::memory_order_release);
  auto expected = static_cast<std::uint32_t>(in);
  // An initiator may have moved us to err meanwhile; then that holds.
  ctx_->state.compare_exchange_strong(expected, static_cast<std::uint32_t>(QpState::sqe));
  flush_sends();
}

void QueuePair::flush_sends() {
  while (sq_.executed.load(std::memory_order_relaxed) != sq_.doorbell)
    complete_send(sq_.at(sq_.executed.load(std::memory_order_relaxed)), WcStatus::wr_flush_err);
}

// IBA 10.3.1.5: affiliated event, if modify asked for it.
void QueuePair::drained() {
  if (!draining_.exchange(false, std::memory_order_acq_rel) || !attributes_.sqd_event) return;
  nic_.host().async_event(AsyncEvent::sq_drained, this, nullptr);
}

void QueuePair::connect_remote(HostPort::Wait wait) {
  if (attributes_.destination.value() == 0) return;
  remote_.connect(nic_.host().peer(attributes_.destination.slot(), wait), qpn_, attributes_.destination);
}

// The destination was reset and brought up again after we had connected: on a wire its number alone would
// find it.
bool QueuePair::reconnect_if_stale() {
  if (!remote_.stale()) return false;
  connect_remote(HostPort::Wait::no);
  return remote_.connected();
}

}  // namespace weir::rnic
