// Unreliable datagrams: requester and responder roles of UD queue pairs.
//
// Any process may send to a UD queue pair, so its receive side is a ring of slots claimed by
// compare-exchange. The payload (at most one MTU, behind its 40-byte GRH) always travels through the slot;
// the owner's poll scatters it. A slot can be claimed only while a receive is posted; with none, or with a
// wrong Q_Key, the datagram is dropped, as the specification says. A sender that dies between claim and
// completion leaves a hole at which polling stops until the end of that process is noticed and the hole
// becomes an empty datagram.
#include <algorithm>
#include <cstring>

#include "rnic/adapter.hpp"
#include "rnic/copy.hpp"
#include "rnic/queue_pair.hpp"

namespace weir::rnic {
namespace {

constexpr std::uint64_t claim_word(std::uint32_t sequence, Slot sender, DatagramState state) {
  return static_cast<std::uint64_t>(sequence) << 32 | static_cast<std::uint64_t>(sender) << 8 |
         static_cast<std::uint64_t>(state);
}
constexpr DatagramState claim_state(std::uint64_t word) { return static_cast<DatagramState>(word & 0xff); }
constexpr Slot claim_sender(std::uint64_t word) { return static_cast<Slot>(word >> 8 & 0xffff); }
constexpr std::uint32_t claim_sequence(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

// The next free slot, ours; nullptr when no receive is posted.
DatagramSlot* claim_slot(QpContext& target, DatagramSlot* slots, std::uint32_t mask, Slot sender) {
  for (;;) {
    std::uint32_t count = target.datagram_next.load(std::memory_order_acquire);
    const std::uint32_t posted = target.rq_posted.load(std::memory_order_acquire);
    if (count == posted) return nullptr;
    if (posted - count > mask + 1) {
      // More than the ring holds: we looked at an old `datagram_next`, or the target's words are nonsense.
      if (target.datagram_next.load(std::memory_order_acquire) == count) return nullptr;
      continue;
    }
    DatagramSlot& slot = slots[count & mask];
    std::uint64_t word = claim_word(count, 0, DatagramState::empty);
    const bool mine = slot.claim.compare_exchange_strong(
        word, claim_word(count, sender, DatagramState::claimed), std::memory_order_acq_rel);
    target.datagram_next.compare_exchange_strong(count, count + 1, std::memory_order_acq_rel);
    if (mine) return &slot;
  }
}

// Scope of one delivery. The target's reset and destroy wait until nobody is inside, because its ring goes
// away then.
class Delivery {
 public:
  explicit Delivery(QpContext& target) : target_(target) {
    // seq_cst: we count ourselves, then look at the state; the owner stores the state, then looks at the
    // count.
    target_.datagram_senders.fetch_add(1, std::memory_order_seq_cst);
  }
  ~Delivery() { target_.datagram_senders.fetch_sub(1, std::memory_order_release); }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

 private:
  QpContext& target_;
};

bool accepts_datagrams(const QpContext& target, std::uint32_t qkey) {
  const auto state = static_cast<QpState>(target.state.load(std::memory_order_seq_cst));
  const bool receiving = state == QpState::rtr || state == QpState::rts || state == QpState::sqd;
  return receiving && target.type == static_cast<std::uint16_t>(QpType::ud) &&
         target.qkey.load(std::memory_order_relaxed) == qkey && target.recv_cq < max_cqs &&
         target.cq_line < max_qps;
}

}  // namespace

Outcome QueuePair::execute_datagram(SendWqe& wqe, const Gather& payload) {
  if (payload.bytes > max_datagram_bytes) {
    wqe.status = WcStatus::loc_len_err;
    return Outcome::nak_invalid;
  }
  const Qpn to = wqe.datagram.destination;
  const PeerPtr peer = nic_.host().peer(to.slot(), HostPort::Wait::yes);
  if (!peer || !peer->alive()) return Outcome::done;  // nobody there: lost, and the sender cannot know
  QpContext& target = peer->segment().qps[to.index()];
  // A Q_Key with its top bit set means: use the queue pair's own (IBA 10.2.5).
  const std::uint32_t qkey = wqe.datagram.qkey & 0x80000000u ? attributes_.qkey : wqe.datagram.qkey;
  const Delivery delivery(target);
  if (!accepts_datagrams(target, qkey)) return Outcome::done;
  const std::uint32_t mask = target.rq_mask;
  auto* slots = at_offset<DatagramSlot>(peer->segment_base(), peer->segment_size(), target.cqe_offset,
                                        std::uint64_t{mask} + 1);
  if (slots == nullptr) return Outcome::done;
  DatagramSlot* slot = claim_slot(target, slots, mask, qpn_.slot());
  if (slot == nullptr) return Outcome::done;

  if (wqe.datagram.grh != nullptr)
    std::memcpy(slot->bytes, wqe.datagram.grh, grh_bytes);
  else
    std::memset(slot->bytes, 0, grh_bytes);
  copy_gather(slot->bytes + grh_bytes, payload.span());
  slot->byte_len = static_cast<std::uint32_t>(payload.bytes) + grh_bytes;
  slot->imm_be = wqe.imm_be;
  slot->has_imm = wqe.opcode == SendOpcode::send_with_imm;
  slot->src_qpn = qpn_.value();
  slot->solicited = wqe.solicited;
  const std::uint32_t sequence = claim_sequence(slot->claim.load(std::memory_order_relaxed));
  // release: pairs with the poller's acquire of the claim.
  slot->claim.store(claim_word(sequence, qpn_.slot(), DatagramState::complete), std::memory_order_release);
  CqContext& cq = peer->segment().cqs[target.recv_cq];
  mark_ready(cq, target.cq_line);
  if (take_armed(cq, wqe.solicited ? Solicited::yes : Solicited::no)) peer->raise_cq_event(target.recv_cq);
  return Outcome::done;
}

// Publishes the slots of receives that were just posted: each becomes claimable under its own sequence.
void QueuePair::open_datagram_slots(std::uint32_t from, std::uint32_t to) {
  auto* slots = nic_.segment().at<DatagramSlot>(ctx_->cqe_offset);
  for (std::uint32_t count = from; count != to; ++count)
    slots[count & ctx_->rq_mask].claim.store(claim_word(count, 0, DatagramState::empty),
                                             std::memory_order_release);
}

std::size_t QueuePair::poll_datagrams(std::span<WorkCompletion> out) {
  auto* slots = nic_.segment().at<DatagramSlot>(ctx_->cqe_offset);
  std::size_t filled = 0;
  while (filled < out.size()) {
    const std::uint32_t polled = rq_polled_.load(std::memory_order_relaxed);
    DatagramSlot& slot = slots[polled & ctx_->rq_mask];
    const std::uint64_t word = slot.claim.load(std::memory_order_acquire);
    const bool here =
        polled != ctx_->rq_posted.load(std::memory_order_acquire) && claim_sequence(word) == polled;
    if (!here || claim_state(word) != DatagramState::complete) break;
    const ReceiveWqe& wqe = rq_at(polled);
    const std::uint32_t byte_len = std::min(slot.byte_len, grh_bytes + max_datagram_bytes);
    WcStatus status = byte_len > wqe.length ? WcStatus::loc_len_err : WcStatus::success;
    if (status == WcStatus::success && !scatter(wqe, {slot.bytes, byte_len})) status = WcStatus::loc_prot_err;
    out[filled++] = {.wr_id = wqe.wr_id,
                     .status = status,
                     .opcode = WcOpcode::recv,
                     .has_imm = slot.has_imm,
                     .has_invalidated = false,
                     .has_grh = true,
                     .byte_len = byte_len,
                     .imm_be = slot.imm_be,
                     .qpn = qpn_.value(),
                     .src_qpn = slot.src_qpn};
    rq_polled_.store(polled + 1, std::memory_order_release);
  }
  if (filled < out.size()) filled += poll_flushed_receives(out.subspan(filled));
  return filled;
}

std::size_t QueuePair::unpolled_datagrams() const {
  const auto* slots = nic_.segment().at<DatagramSlot>(ctx_->cqe_offset);
  const std::uint32_t posted = ctx_->rq_posted.load(std::memory_order_acquire);
  const std::uint32_t polled = rq_polled_.load(std::memory_order_relaxed);
  std::uint32_t next = polled;
  while (next != posted) {
    const std::uint64_t word = slots[next & ctx_->rq_mask].claim.load(std::memory_order_acquire);
    if (claim_sequence(word) != next || claim_state(word) != DatagramState::complete) break;
    ++next;
  }
  return next - polled;
}

// A sender was killed: what it had claimed and not completed is delivered as an empty datagram, so that the
// receive is not lost and the ring moves on.
void QueuePair::void_datagrams_of(Slot dead) {
  auto* slots = nic_.segment().at<DatagramSlot>(ctx_->cqe_offset);
  for (std::uint32_t i = 0; i <= ctx_->rq_mask; ++i) {
    std::uint64_t word = slots[i].claim.load(std::memory_order_acquire);
    if (claim_state(word) != DatagramState::claimed || claim_sender(word) != dead) continue;
    slots[i].byte_len = grh_bytes;
    slots[i].has_imm = false;
    slots[i].claim.store(claim_word(claim_sequence(word), dead, DatagramState::complete),
                         std::memory_order_release);
    raise_local(*config_.recv_cq, recv_line_, Solicited::no);
  }
}

}  // namespace weir::rnic
