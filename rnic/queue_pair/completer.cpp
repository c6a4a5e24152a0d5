// The completer: turns what has finished on a queue pair into work completions, under the lock of the CQ
// polled.
//
// Sends: WQEs between polled and executed; unsignalled successes are skipped and freed by the completion
// behind them. Receives: CQEs that the initiator published, in order; payload that came inside the CQE or
// through the landing ring is scattered into the posted buffers here. In the error state, and after the last
// real CQE, what is still posted completes as flushed.
#include <algorithm>
#include <cstring>
#include <utility>

#include "rnic/adapter.hpp"
#include "rnic/memory/arrived.hpp"
#include "rnic/memory/prefetch.hpp"
#include "rnic/memory/trapped_copy.hpp"
#include "rnic/queue_pair/queue_pair.hpp"

namespace weir::rnic {
namespace {

WcOpcode completion_opcode(SendOpcode opcode) {
  switch (opcode) {
    case SendOpcode::rdma_write:
    case SendOpcode::rdma_write_with_imm:
      return WcOpcode::rdma_write;
    case SendOpcode::rdma_read:
      return WcOpcode::rdma_read;
    case SendOpcode::compare_and_swap:
      return WcOpcode::compare_and_swap;
    case SendOpcode::fetch_and_add:
      return WcOpcode::fetch_and_add;
    case SendOpcode::atomic_write:
      return WcOpcode::atomic_write;
    case SendOpcode::local_invalidate:
      return WcOpcode::local_invalidate;
    case SendOpcode::bind_window:
      return WcOpcode::bind_window;
    default:
      return WcOpcode::send;
  }
}

// Of a receive. What it invalidated is said only where the message was taken.
inline WorkCompletion receive_completion(const ArrivedCqe& cqe, std::uint64_t wr_id, WcStatus status, Qpn by,
                                         Qpn from) {
  return {.wr_id = wr_id,
          .status = status,
          .opcode = cqe.opcode(),
          .has_imm = cqe.carries() == Carries::immediate,
          .has_invalidated = cqe.carries() == Carries::invalidate && status == WcStatus::success,
          .has_grh = false,
          .byte_len = cqe.byte_len(),
          .imm_be = cqe.imm_be(),
          .qpn = by.value(),
          .src_qpn = from.value(),
          .over_ipv4 = false};
}

}  // namespace

// Sends first, but for a call after one whose array they filled: a program that posts a send for each that
// completes would otherwise never hear of what arrived, and post no receives.
std::size_t QueuePair::poll_completions(CompletionQueue& cq, std::span<WorkCompletion> out) {
  std::size_t filled = 0;
  const auto poll_arrived = [&] {
    if (&cq != config_.recv_cq || filled == out.size()) return;
    const std::span<WorkCompletion> rest = out.subspan(filled);
    // Before the look at what arrived: once this is set nothing more arrives, and what did is not flushed.
    const bool flushing = has_own_rq() && flushing_.load(std::memory_order_seq_cst);
    std::size_t received = is_datagram(config_.type) ? poll_datagrams(rest) : poll_receives(rest);
    if (flushing) received += poll_flushed_receives(rest.subspan(received));
    if (received != 0) count_receives(rest.first(received));
    filled += received;
  };
  const bool one_cq = config_.send_cq == config_.recv_cq;  // else its polls are under two locks
  const bool arrived_first = one_cq && std::exchange(sends_filled_, false);
  if (arrived_first) poll_arrived();
  if (&cq == config_.send_cq) {
    const std::size_t sent = poll_sends(out.subspan(filled));
    if (sent != 0) counters_.send_completions.add(sent);
    filled += sent;
    if (one_cq) sends_filled_ = sent != 0 && filled == out.size() && !arrived_first;
  }
  if (!arrived_first) poll_arrived();
  return filled;
}

void QueuePair::count_receives(std::span<const WorkCompletion> polled) {
  std::uint64_t good = 0;
  for (const WorkCompletion& wc : polled) {
    if (wc.status == WcStatus::success)
      ++good;
    else
      (wc.status == WcStatus::wr_flush_err ? counters_.receives_flushed : counters_.receive_errors).add(1);
    if (!is_datagram(config_.type) || wc.status != WcStatus::success) continue;
    counters_.datagram_bytes.add(wc.byte_len - (wc.has_grh ? grh_bytes : 0));
    counters_.datagrams.add(1);
  }
  counters_.receives.add(good);
}

std::size_t QueuePair::unpolled(const CompletionQueue& cq) const {
  std::size_t count = 0;
  const std::uint32_t executed = sq_.executed.load(std::memory_order_acquire);
  for (std::uint32_t at = send_scanned_; &cq == config_.send_cq && at != executed; ++at)
    if (sq_.at(at).signaled || sq_.at(at).status != WcStatus::success) ++count;
  if (&cq != config_.recv_cq) return count;
  if (flushing_.load(std::memory_order_acquire) && has_own_rq())
    return count +
           (ctx_->rq_posted.load(std::memory_order_acquire) - rq_polled_.load(std::memory_order_relaxed));
  return count + (is_datagram(config_.type) ? unpolled_datagrams() : unpolled_receives());
}

std::size_t QueuePair::unpolled_receives() const {
  if (rings_.cqe_offset == 0) return 0;
  const auto* ring = nic_.segment().at<ReceiveCqe>(rings_.cqe_offset);
  std::uint32_t next = cqe_polled_;
  while (next - cqe_polled_ <= rings_.cqe_mask &&
         ring[next & rings_.cqe_mask].sequence.load(std::memory_order_acquire) == next + 1)
    ++next;
  return next - cqe_polled_;
}

// What was looked at stays looked at (send_scanned_): with one signal for hundreds of writes, walking the
// unsignalled ones again in each poll would cost more than everything else. Entries are freed only by a
// completion behind them.
std::size_t QueuePair::poll_sends(std::span<WorkCompletion> out) {
  // seq_cst here and at the CQE: this may be the last look before a sleep (publish_completion()).
  const std::uint32_t executed = sq_.executed.load(std::memory_order_seq_cst);
  std::size_t filled = 0;
  while (send_scanned_ != executed && filled < out.size()) {
    const SendWqe& wqe = sq_.at(send_scanned_++);
    if (!wqe.signaled && wqe.status == WcStatus::success) continue;
    out[filled++] = {.wr_id = wqe.wr_id,
                     .status = wqe.status,
                     .opcode = completion_opcode(wqe.opcode),
                     .has_imm = false,
                     .has_invalidated = false,
                     .has_grh = false,
                     .byte_len = wqe.byte_len,
                     .imm_be = 0,
                     .qpn = qpn_.value(),
                     .src_qpn = 0,
                     .over_ipv4 = false};
    sq_.polled.store(send_scanned_, std::memory_order_release);
  }
  return filled;
}

void QueuePair::prefetch_completion() const {
  if (is_datagram(config_.type) || rings_.cqe_offset == 0) return;
  prefetch_to_read(nic_.segment().at<ReceiveCqe>(rings_.cqe_offset) + (cqe_polled_ & rings_.cqe_mask));
  if (has_own_rq()) prefetch_to_read(&rq_at(cqe_polled_));
}

// The payload that came in the CQE or in the landing ring goes into the posted buffers.
inline WcStatus QueuePair::scatter_payload(const ArrivedCqe& cqe, const ReceiveWqe& wqe) {
  if (cqe.status() != WcStatus::success) return cqe.status();
  bool scattered = true;
  if (cqe.payload_at() == PayloadAt::cqe) {
    scattered = scatter(wqe, cqe.payload());
  } else if (cqe.payload_at() == PayloadAt::landing) {
    const std::byte* landing = nic_.segment().base() + rings_.landing_offset;
    scattered = scatter(wqe, {landing + cqe.landing_at(), cqe.byte_len()});
    ctx_->landing_head.store(cqe.landing_end(), std::memory_order_release);
    likely_landing_ = landing + (cqe.landing_end() & rings_.landing_mask);
  }
  if (scattered) return WcStatus::success;
  fail_by_own_memory();
  return WcStatus::loc_prot_err;
}

// A class A error of the responder (IBA 9.9.3.1), found only now, after the sender has its completion: the
// queue pair goes to the error state. The rest is for the progress thread, as we are under the CQ's lock.
void QueuePair::fail_by_own_memory() const {
  to_error_state(*ctx_);
  if (const PeerPtr self = nic_.host().peer(nic_.slot(), HostPort::Wait::no))
    self->report_fault(qpn_, Fault::operational);
}

// To the initiator: the places of so many more CQEs are free again.
inline void QueuePair::show_polled(std::uint32_t receives) {
  if (has_own_rq()) {
    // In this order: an initiator that finds a receive posted in a place that is free again finds room for
    // its completion too, and never waits for it. One writer, under the CQ's lock: no locked instruction.
    ctx_->cqe_polled.store(cqe_polled_, std::memory_order_release);
    rq_polled_.store(rq_polled_.load(std::memory_order_relaxed) + receives, std::memory_order_release);
  } else {
    // seq_cst with the look at `initiator_parked`: an initiator may wait for room in this ring.
    ctx_->cqe_polled.store(cqe_polled_, std::memory_order_seq_cst);
    kick_initiator_if_parked();
  }
}

std::size_t QueuePair::poll_receives(std::span<WorkCompletion> out) {
  if (rings_.cqe_offset == 0) return 0;
  std::size_t filled = 0;
  auto* ring = nic_.segment().at<ReceiveCqe>(rings_.cqe_offset);
  const bool own = has_own_rq();
  const std::uint32_t landing_bytes = rings_.landing_mask == 0 ? 0 : rings_.landing_mask + 1;
  while (filled < out.size()) {
    const ReceiveCqe& cqe = ring[cqe_polled_ & rings_.cqe_mask];
    // Pairs with the initiator's publish: the CQE's fields and payload come after it. seq_cst as in
    // poll_sends().
    if (cqe.sequence.load(std::memory_order_seq_cst) != cqe_polled_ + 1) break;
    const std::uint32_t named = read_once(cqe.wqe);
    const std::uint32_t number = own ? named & rings_.rq_mask : named;
    if (!own && number >= config_.srq->max_wrs()) break;  // a neighbour wrote nonsense: never index by it
    const ReceiveWqe& wqe = own ? rq_at(number) : config_.srq->wqe(number);
    const PostedReceive& posted = own ? posted_[number] : config_.srq->posted(number);
    const ArrivedCqe arrived(cqe, posted.length, landing_bytes);
    const WcStatus status = scatter_payload(arrived, wqe);
    const Qpn from(ctx_->remote_qpn.load(std::memory_order_relaxed));
    WorkCompletion& wc = out[filled++];
    wc = receive_completion(arrived, posted.wr_id, status, qpn_, from);
    if (wc.has_invalidated) nic_.windows().finish_invalidate(wc.imm_be, qpn_);
    if (!own) config_.srq->free_wqe(number);
    ++cqe_polled_;
  }
  if (filled == 0) {
    // Whoever waits for the next CQE takes the payload behind it along.
    prefetch_to_read(likely_landing_);
  } else {
    // What arrived is probably a request; its answer will be written there.
    prefetch_to_write(likely_cqe_.load(std::memory_order_relaxed));
    prefetch_to_write(likely_write_.load(std::memory_order_relaxed));
    show_polled(static_cast<std::uint32_t>(filled));
  }
  return filled;
}

std::size_t QueuePair::poll_flushed_receives(std::span<WorkCompletion> out) {
  std::size_t filled = 0;
  std::uint32_t polled = rq_polled_.load(std::memory_order_relaxed);
  const std::uint32_t posted = ctx_->rq_posted.load(std::memory_order_seq_cst);  // as in poll_sends()
  if (posted - polled > rings_.rq_mask + 1) return 0;                            // a neighbour wrote nonsense
  while (polled != posted && filled < out.size()) {
    out[filled++] = {.wr_id = posted_[polled++ & rings_.rq_mask].wr_id,
                     .status = WcStatus::wr_flush_err,
                     .opcode = WcOpcode::recv,
                     .has_imm = false,
                     .has_invalidated = false,
                     .has_grh = false,
                     .byte_len = 0,
                     .imm_be = 0,
                     .qpn = qpn_.value(),
                     .src_qpn = 0,
                     .over_ipv4 = false};
  }
  rq_polled_.store(polled, std::memory_order_release);
  return filled;
}

// The lkeys were checked by the initiator when it took the WQE; they are checked again because the region may
// have been deregistered since, and this copy would write into freed memory.
bool QueuePair::scatter(const ReceiveWqe& wqe, std::span<const std::byte> payload) const {
  return scatter_into(nic_, has_own_rq() ? config_.pd : config_.srq->pd(), wqe, payload);
}

bool scatter_into(Adapter& nic, std::uint32_t pd, const ReceiveWqe& wqe, std::span<const std::byte> payload) {
  const ProtectionTable& table = nic.table();
  // A neighbour may have written nonsense there; what is read past the WQE is checked as any sge is.
  const std::uint32_t sges = std::min(read_once(wqe.num_sge), max_sge);
  for (std::uint32_t i = 0; i < sges && !payload.empty(); ++i) {
    const Sge sge = read_once(wqe.sge[i]);
    if (sge.length == 0) continue;
    if (!table.allows(sge, pd, ProtectionTable::Use::write)) return false;
    const std::size_t length = std::min<std::size_t>(sge.length, payload.size());
    const TptEntry& entry = table.entry(sge.lkey);
    void* const at = ProtectionTable::address(entry, sge.addr);
    if ((entry.access & access::on_demand) && !nic.host().traps_copies() &&
        !nic.host().fault_in(at, length, ProtectionTable::Use::write))
      return false;
    const iovec into{at, length};
    if (try_copy({&into, 1}, {}, [&] { std::memcpy(at, payload.data(), length); }) != Trapped::no)
      return false;
    payload = payload.subspan(length);
  }
  return payload.empty();
}

std::size_t SharedReceiveQueue::poll_completions(Adapter& nic, std::span<WorkCompletion> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const XrcCompletion* const completion = completions_->next();
    if (completion == nullptr) break;
    const ReceiveCqe& cqe = completion->cqe;
    const std::uint32_t number = read_once(cqe.wqe);
    if (number >= wrs_) {  // a neighbour wrote nonsense: never index by it
      completions_->take();
      continue;
    }
    const ReceiveWqe& received = wqe(number);
    const ArrivedCqe arrived(cqe, posted_[number].length, 0);
    WcStatus status = arrived.status();
    if (status == WcStatus::success && arrived.payload_at() == PayloadAt::cqe &&
        !scatter_into(nic, pd_, received, arrived.payload()))
      status = WcStatus::loc_prot_err;
    // A queue pair's messages may go to several SRQs, which are polled by as many threads.
    const Qpn by(read_once(completion->qpn));
    SegmentHeader& header = nic.segment().header();
    QpCounters& counters = by.slot() == nic.slot() ? header.qp_counters[by.index()] : header.counters.retired;
    (status == WcStatus::success ? counters.receives : counters.receive_errors).shared_add(1);
    WorkCompletion& wc = out[filled++];
    wc = receive_completion(arrived, posted_[number].wr_id, status, by, Qpn(read_once(completion->src_qpn)));
    if (wc.has_invalidated) nic.windows().finish_invalidate(wc.imm_be, by);
    completions_->take();
    free_wqe(number);
  }
  return filled;
}

void QueuePair::raise_local(CompletionQueue& cq, std::uint32_t line, Solicited solicited) {
  mark_ready(cq.context(), line);
  if (!take_armed(cq.context(), solicited)) return;
  counters_.own_wakeups.shared_add(1);
  nic_.raise_cq(cq.index());
}

}  // namespace weir::rnic
