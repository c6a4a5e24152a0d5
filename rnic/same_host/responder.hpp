// The responder's role, played by the initiator on the target's shared state (same-host path).
//
// A real NIC's responder runs at the target. Here the initiator does its work, so that the target's threads
// are never needed: check that the target queue pair answers us, check rkey, PD, access and bounds in the
// target's protection table, move the data, take a receive WQE, publish its CQE. One initiator per queue
// pair, in order, so everything it writes there has one writer.
//
// While an operation runs, the target's QpContext.hazard is odd: deregistration, reset and destroy wait for
// it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "rnic/memory/gather.hpp"
#include "rnic/memory/protection_table.hpp"
#include "rnic/memory/trapped_copy.hpp"
#include "rnic/peer.hpp"
#include "rnic/queue_pair/send_queue.hpp"
#include "rnic/same_host/current_cpu.hpp"
#include "rnic/same_host/guests.hpp"
#include "rnic/same_host/remote_srq.hpp"

namespace weir::rnic {

enum class Outcome : std::uint8_t {
  done,
  rnr,          // the target has no receive posted
  no_response,  // the target queue pair is not there, not ready, or not connected to us
  late,         // the target's process lives, and has not come to copying
  local_fault,  // memory of ours is not there any more
  contended,    // somebody who lives holds what it takes, and does not know that we wait: the lock of an
              // atomic's word, a place as a guest; or, XRC, the SRQ's process does not let itself be reached
  connecting,      // to a process that no connection leads to yet, in the background: datagrams, XRC
  nak_access,      // remote access error
  nak_invalid,     // remote invalid request (the message is longer than the receive)
  nak_operational  // remote operational error (its receive buffers are not what it said, or its memory is
                   // gone)
};

struct Arrival {  // what the completion of a receive says
  WcOpcode opcode = WcOpcode::recv;
  std::uint64_t byte_len = 0;
  std::uint32_t imm_be = 0;
  Carries carries = Carries::nothing;  // what imm_be is
  bool solicited = false;
};

class RemoteQueuePair {
 public:
  // Looks at the target once, when connecting: false when its context makes no sense (yet).
  bool connect(PeerPtr, Qpn own, Qpn target);
  // Our own queue pair, for requests that come in packets: they are executed here like a neighbour's, on our
  // own segment. `sender`: the number that they come from, which means nothing to us.
  bool connect_to_ourselves(PeerPtr self, Qpn ours, Qpn sender);
  // XRC, before each operation: the SRQ in whose protection domain the operation is checked and which it may
  // deliver to. `of`: its process; nullptr: nobody lives there.
  bool srq_selected(Qpn srqn) const;
  Outcome select_srq(Qpn srqn, const PeerPtr& of);
  void disconnect();
  // The target's process has ended, and nobody keeps the target.
  bool gone() const { return connected() && !peer->alive() && !kept(); }
  // XRC: a process that notes that it has the target open. To find one that keeps it when its own has ended.
  std::optional<Slot> opener() const;
  bool keep_by(PeerPtr opener);  // false: it has not, and the note is of one that ended
  void forget_opener(Slot dead);
  bool kept() const;
  // The SEND that is under way will not be tried again.
  void give_up_send();
  bool connected() const { return ctx_ != nullptr; }

  Outcome rdma_write(const Gather&, std::uint64_t addr, std::uint32_t rkey);
  Outcome rdma_write_with_imm(const Gather&, std::uint64_t addr, std::uint32_t rkey, const Arrival&);
  Outcome rdma_read(const Gather&, std::uint64_t addr, std::uint32_t rkey);
  // atomic.cpp. The value from before comes back into the gather's first eight bytes.
  Outcome atomic(SendOpcode, const AtomicOperands&, const Gather& into, std::uint64_t addr,
                 std::uint32_t rkey);
  Outcome atomic_write(const Gather&, std::uint64_t addr, std::uint32_t rkey);
  Outcome send(const Gather&, const Arrival&);

  // The same in parts, for messages that come in packets (piecewise.cpp). Each part holds the hazard by
  // itself; between them a SEND holds its receive.
  Outcome begin_send();  // takes a receive, or goes on with the one taken
  Outcome append_to_send(std::uint64_t offset, std::span<const std::byte>);
  Outcome finish_send(const Arrival&);
  Outcome check_write(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey);
  Outcome check_read(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey);
  // Where a range that is to be read lies, held until end_read().
  Outcome begin_read(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey, iovec& at);
  void end_read();
  // As if a request had been refused with that outcome, which is a NAK.
  Outcome refuse(Outcome);

  std::uint32_t target_min_rnr_timer() const {
    return ctx_ ? ctx_->min_rnr_timer.load(std::memory_order_relaxed) : 0;
  }

  // A receive is posted and its completion has room.
  bool can_receive() { return receive_available() && completion_room(); }

  // Tells the target that we wait for it; call before looking a last time.
  void announce_parked() const;

  // Where we ring the doorbell.
  void tell_cpu(Cpu cpu) {
    if (ctx_ == nullptr || cpu == cpu_told_) return;
    cpu_told_ = cpu;
    ctx_->initiator_cpu.store(cpu, std::memory_order_relaxed);
  }

  // The target is in a receiving state and connected to us.
  bool answers() const;

  // The target was reset or its number given to another since we connected: its rings are not those we know.
  bool stale() const { return ctx_ != nullptr && ctx_->incarnation != incarnation_; }
  // Where the next message will probably write: behind the last CQE, and behind the last RDMA WRITE.
  const void* likely_cqe() const { return behind_last_cqe_; }
  const void* likely_write() const { return behind_last_write_; }

  // Where to count what is done there; nullptr: not connected.
  QpCounters* counters() const { return counters_; }

  PeerPtr peer;  // of the target queue pair

 private:
  class Operation;  // holds the hazard
  template <class Act>
  Outcome on_word(std::uint64_t addr, std::uint32_t rkey, std::uint32_t right, Act act);
  Outcome exchange(SendOpcode, const AtomicOperands&, const TptEntry&, std::uint64_t addr,
                   std::uint64_t& before) const;
  Outcome store(std::uint64_t value, const TptEntry&, std::uint64_t addr) const;
  template <class Act>
  Outcome in_place(const TptEntry&, std::uint64_t addr, const std::byte* word, const Act& act) const;

  Outcome check_range(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey, std::uint32_t need);
  const TptEntry* check_rkey(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey,
                             std::uint32_t need) const;
  bool window_answers(const TptEntry&, std::uint32_t key) const;
  bool invalidate_remotely(std::uint32_t key) const;
  Outcome move_in(const Gather&, const TptEntry&, std::uint64_t addr);
  bool receive_available();
  bool completion_room();
  bool take_receive(TakenReceive&);
  void put_back(const TakenReceive&);
  Outcome deliver(const Gather&, const ReceiveWqe&, ReceiveCqe&);
  Outcome deliver_direct(const Gather&, const ReceiveWqe&);
  Outcome outcome_of_write(Peer::Transfer);
  Outcome land(const Gather&, ReceiveCqe&);
  bool receive_buffers_valid(const ReceiveWqe&) const;
  std::byte* receive_buffer(const Sge&) const;
  ReceiveCqe& next_cqe() {
    return xrc_completions_ == nullptr ? cqes_[ctx_->cqe_next & cqe_mask_] : next_xrc_completion();
  }
  // remote_xrc.cpp
  ReceiveCqe& next_xrc_completion();
  void complete_xrc();
  void give_up_xrc_completion();
  bool srq_stands() const;
  void publish(ReceiveCqe&, const TakenReceive&, const Arrival&, WcStatus);
  Outcome nak(Outcome with, WcStatus receive_status, const TakenReceive*, const Arrival&);

  Qpn own_, target_;
  std::uint32_t reading_ = 0;     // the hazard, from begin_read() on; 0: not reading
  std::uint32_t answers_to_ = 0;  // what the target's remote_qpn says while it is connected to us
  // On whose memory operations act, by its protection table: `peer`, or of XRC the SRQ's process.
  PeerPtr memory_;
  std::uint32_t pd_ = 0;  // in which rkeys are checked
  QpContext* ctx_ = nullptr;
  QpCounters* counters_ = nullptr;
  CqContext* cq_ = nullptr;
  RemoteSrq srq_;  // connected only where the target has one
  std::byte* wqes_ = nullptr;
  ReceiveCqe* cqes_ = nullptr;
  std::byte* landing_ = nullptr;
  std::uint32_t landing_bytes_ = 0, wqe_mask_ = 0, wqe_stride_ = 0, cqe_mask_ = 0, wqe_max_sge_ = 0;
  std::uint32_t cq_index_ = 0, cq_line_ = 0;
  std::uint16_t incarnation_ = 0;
  Cpu cpu_told_ = 0;
  // Taken for a SEND whose bytes could not be moved yet; its retry goes on with it. give_up_send() gives it
  // back.
  std::optional<TakenReceive> held_;
  // The target's mover may yet make a copy of this request that we gave up: the request is tried again the
  // same way, behind it, and by no mapping that has come meanwhile.
  bool behind_unfinished_ = false;
  const ReceiveCqe* behind_last_cqe_ = nullptr;
  const std::byte* behind_last_write_ = nullptr;

  // XRC, once an SRQ was selected.
  XrcCompletion* xrc_completions_ = nullptr;
  XrcCompletion* xrc_claimed_ = nullptr;
  // Where a completion goes that has no slot: a neighbour's words are nonsense.
  std::unique_ptr<ReceiveCqe> spare_cqe_;
  Qpn srqn_;
  std::uint32_t xrc_mask_ = 0, srq_incarnation_ = 0, guest_hint_ = 0;
  QpOpeners* openers_ = nullptr;
  PeerPtr keeper_;  // once the target's process has ended
};

// Scope of one operation on the target. The target's deregister, reset and destroy wait while the hazard is
// odd; those of an SRQ's process that is not the target's wait while we are its guest.
class RemoteQueuePair::Operation {
 public:
  // `reaches`: the one rkey it may use, or any_receive.
  Operation(RemoteQueuePair& by, std::uint32_t reaches) : by_(by), ctx_(*by.ctx_) {
    // A target that was connected to another since counts the operations of that one there.
    if (!by.answers()) return;
    begun_as_ = ctx_.hazard.load(std::memory_order_relaxed) | 1;
    // release: whoever sees this key sees all that our last operation wrote, and that it is over.
    ctx_.reaches.store(reaches, std::memory_order_release);
    // seq_cst: we store the hazard, then read state and keys; the target stores those, then reads the hazard.
    ctx_.hazard.store(begun_as_, std::memory_order_seq_cst);
    if (by.memory_ && by.memory_ != by.peer) guest_.emplace(by.memory_->segment(), by.own_, by.guest_hint_);
  }
  ~Operation() {
    guest_.reset();
    if (begun_as_ != 0) ctx_.hazard.store(begun_as_ + 1, std::memory_order_release);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // `done`: the operation may begin.
  Outcome admitted() const {
    if (begun_as_ == 0 || !by_.answers()) return Outcome::no_response;
    if (guest_ && !guest_->inside()) return Outcome::contended;
    return by_.srq_stands() ? Outcome::done : Outcome::no_response;
  }

 private:
  const RemoteQueuePair& by_;
  QpContext& ctx_;
  std::uint32_t begun_as_ = 0;  // odd, once it has begun
  std::optional<GuestOperation> guest_;
};

// Whatever else its owner does to it meanwhile.
inline void to_error_state(QpContext& qp) {
  std::uint32_t state = qp.state.load(std::memory_order_relaxed);
  while (state >= static_cast<std::uint32_t>(QpState::rtr) &&
         state <= static_cast<std::uint32_t>(QpState::sqe))
    if (qp.state.compare_exchange_weak(state, static_cast<std::uint32_t>(QpState::err))) break;
}

// A process that died is one that does not answer any more; its end will be reported presently. One that is
// late will answer when it runs again.
inline Outcome outcome_of(Peer::Transfer transfer) {
  switch (transfer) {
    case Peer::Transfer::done:
      return Outcome::done;
    case Peer::Transfer::late:
    case Peer::Transfer::unfinished:
      return Outcome::late;
    case Peer::Transfer::gone:
    case Peer::Transfer::refused:
      return Outcome::no_response;
    case Peer::Transfer::local_fault:
      return Outcome::local_fault;
    case Peer::Transfer::fault:
      break;
  }
  return Outcome::nak_operational;
}

inline Outcome outcome_of(Trapped trapped) {
  if (trapped == Trapped::no) [[likely]]
    return Outcome::done;
  return trapped == Trapped::pieces ? Outcome::local_fault : Outcome::nak_operational;
}

// Runs `copy`, between the pieces and `target`.
template <class Copy>
Outcome copied(const Gather& pieces, std::span<const std::byte> target, const Copy& copy) {
  if (!pieces.is_ours || !target.empty()) return outcome_of(try_copy(pieces.span(), target, copy));
  copy();
  return Outcome::done;
}

}  // namespace weir::rnic
