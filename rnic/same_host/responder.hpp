// The responder's role, played by the initiator on the target's shared state (same-host path).
//
// A real NIC's responder runs at the target. Here the initiator does that work, so the target's threads are
// never needed: check that the target queue pair is connected to us; check rkey, PD, access and bounds in the
// target's protection table; move the data; take a receive WQE and publish its CQE. Each queue pair has one
// initiator, working in order, so everything the initiator writes there has one writer.
//
// While an operation runs, the target's QpContext.hazard is odd; deregistration, reset and destroy wait for
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
#include "rnic/same_host/guest_operations.hpp"
#include "rnic/same_host/remote_srq.hpp"

namespace weir::rnic {

enum class Outcome : std::uint8_t {
  done,
  rnr,          // the target has no receive posted
  no_response,  // the target queue pair is not there, not ready, or not connected to us
  late,         // the target's process is alive, but has not got round to copying
  local_fault,  // memory of ours is no longer there
  contended,   // a live process holds what the operation needs and does not know that we wait (the lock of an
               // atomic's word, a guest slot); or, for XRC, the SRQ's process cannot be reached
  connecting,  // datagrams, XRC: a connection to the target's process does not exist yet and is being made in
               // the background
  nak_access,  // remote access error
  nak_invalid,     // remote invalid request (the message is longer than the receive)
  nak_operational  // remote operational error (its receive buffers are not what it said, or its memory is
                   // gone)
};

struct Arrival {  // what the completion of a receive says
  WcOpcode opcode = WcOpcode::recv;
  std::uint64_t byte_len = 0;
  std::uint32_t imm_be = 0;
  Carries carries = Carries::nothing;  // the meaning of imm_be
  bool solicited = false;
};

class RemoteQueuePair {
 public:
  // Checks the target once, on connecting: false when its context makes no sense (yet).
  bool connect(PeerPtr, Qpn own, Qpn target);
  // Connects to our own queue pair, for requests that arrive in packets: they are executed here like a
  // neighbour's, on our own segment. `sender`: the number they come from, which means nothing to us.
  bool connect_to_ourselves(PeerPtr self, Qpn ours, Qpn sender);
  // XRC, before each operation: selects the SRQ whose protection domain the operation is checked in and which
  // it may deliver to. `of`: its process; nullptr: no live process.
  bool srq_selected(Qpn srqn) const;
  Outcome select_srq(Qpn srqn, const PeerPtr& of);
  // XRC: the selected SRQ is that of another process than the queue pair.
  bool acts_on_another_process() const { return memory_ != peer; }
  void disconnect();
  // The target's process has ended, and no other process keeps the target.
  bool gone() const { return connected() && !peer->alive() && !kept(); }
  // XRC: a process that records that it has the target open. Used to find a process that keeps the target
  // when the target's own has ended.
  std::optional<Slot> opener() const;
  bool keep_by(PeerPtr opener);  // false: it does not have the target open; the record is of an ended process
  void forget_opener(Slot dead);
  bool kept() const;
  // The SEND in progress will not be retried.
  void give_up_send();
  bool connected() const { return ctx_ != nullptr; }
  // The target answers from the call on that finds it expecting what we send; true: it was this one. A wire
  // compares each packet's PSN (IBA 9.7.4.1.2), here the first ones are compared once. `first_psn`: nothing
  // if we have sent already, because a target that was reset meanwhile expects a PSN that nobody counts here.
  bool agree(std::optional<std::uint32_t> first_psn);
  // Once agreed: how much of a message the target takes in one packet.
  std::uint32_t mtu_bytes() const { return ctx_->terms.mtu_bytes.load(std::memory_order_relaxed); }

  Outcome rdma_write(const Gather&, std::uint64_t addr, std::uint32_t rkey);
  Outcome rdma_write_with_imm(const Gather&, std::uint64_t addr, std::uint32_t rkey, const Arrival&);
  Outcome rdma_read(const Gather&, std::uint64_t addr, std::uint32_t rkey);
  // atomic.cpp. The word's previous value comes back in the gather's first eight bytes.
  Outcome atomic(SendOpcode, const AtomicOperands&, const Gather& into, std::uint64_t addr,
                 std::uint32_t rkey);
  Outcome atomic_write(const Gather&, std::uint64_t addr, std::uint32_t rkey);
  Outcome send(const Gather&, const Arrival&);

  // The same in parts, for messages that arrive in packets (piecewise.cpp). Each part sets the hazard for
  // itself; between parts a SEND holds its receive.
  Outcome begin_send();  // takes a receive, or continues with the one already taken
  Outcome append_to_send(std::uint64_t offset, std::span<const std::byte>);
  Outcome finish_send(const Arrival&);
  Outcome check_write(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey);
  Outcome check_read(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey);
  // Where a range to be read is located; held until end_read(). `after_refusal`: the READ was accepted, and a
  // later request was refused.
  Outcome begin_read(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey, iovec& at,
                     bool after_refusal = false);
  bool has_refused() const { return connection_.refused; }
  void end_read();
  // Acts as if a request had been refused with that outcome, which is a NAK.
  Outcome refuse(Outcome);

  std::uint32_t target_min_rnr_timer() const {
    return ctx_ ? ctx_->terms.min_rnr_timer.load(std::memory_order_relaxed) : 0;
  }

  // A receive is posted and its completion has room.
  bool can_receive() { return receive_available() && completion_room(); }

  // Tells the target that we wait for it; call before the last check.
  void announce_parked() const;

  // Records the CPU on which we ring the doorbell.
  void set_cpu(Cpu cpu) {
    if (ctx_ == nullptr || cpu == cpu_told_) return;
    cpu_told_ = cpu;
    ctx_->initiator_cpu.store(cpu, std::memory_order_relaxed);
  }

  // The target is in a receiving state and connected to us.
  bool expects_us() const;
  // And the terms were agreed on.
  bool answers() const;
  // It would be, had a refusal not ended it.
  bool ended_by_refusal() const;

  // The target was reset, or its number reused, since we connected: its rings are not the ones we know.
  bool stale() const { return ctx_ != nullptr && ctx_->incarnation != connection_.incarnation; }
  // Where the next message will probably write: after the last CQE, and after the last RDMA WRITE.
  const void* likely_cqe() const { return behind_last_cqe_; }
  const void* likely_write() const { return behind_last_write_; }

  // Where to count operations on the target; nullptr: not connected.
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

  bool answers_as(std::uint32_t initiator) const;
  bool is_connected_to(std::uint32_t initiator) const;
  bool permits(std::uint32_t need) const;
  Outcome not_permitted();
  Outcome check_range(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey, std::uint32_t need);
  const TptEntry* check_rkey(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey,
                             std::uint32_t need) const;
  bool window_answers(const TptEntry&, std::uint32_t key) const;
  bool invalidate_remotely(std::uint32_t key) const;
  Outcome move_in(const Gather&, const TptEntry&, std::uint64_t addr);
  bool receive_available();
  bool is_withheld(std::uint32_t from);
  bool completion_room();
  bool take_receive(TakenReceive&);
  void put_back(const TakenReceive&);
  Outcome deliver(const Gather&, const ReceiveWqe&, ReceiveCqe&);
  Outcome deliver_direct(const Gather&, const ReceiveWqe&);
  Outcome outcome_of_write(Peer::Transfer);
  Outcome land(const Gather&, ReceiveCqe&);
  bool receive_buffers_valid(const ReceiveWqe&, std::uint64_t bytes) const;
  const TptEntry* receive_region(const Sge&) const;
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

  static constexpr std::uint32_t not_agreed_yet = ~0u;  // no remote_qpn has this value

  Qpn own_, target_;
  std::uint32_t reading_ = 0;  // the hazard, from begin_read() on; 0: no read in progress
  struct Connection {
    std::uint32_t answers_to = 0;              // the target's remote_qpn while it is connected to us
    std::uint32_t agreed_as = not_agreed_yet;  // the same, from agree() on
    std::uint16_t incarnation = 0;
    bool refused = false;  // a request of ours, which moved the target to the error state
  } connection_;
  // The process whose memory and protection table operations use: `peer`, or for XRC the SRQ's process.
  PeerPtr memory_;
  std::uint32_t pd_ = 0;  // in which rkeys are checked
  QpContext* ctx_ = nullptr;
  QpCounters* counters_ = nullptr;
  CqContext* cq_ = nullptr;
  RemoteSrq srq_;  // connected only if the target has one
  std::byte* wqes_ = nullptr;
  ReceiveCqe* cqes_ = nullptr;
  std::byte* landing_ = nullptr;
  std::uint32_t landing_bytes_ = 0, wqe_mask_ = 0, wqe_stride_ = 0, cqe_mask_ = 0, wqe_max_sge_ = 0;
  std::uint32_t cq_index_ = 0, cq_line_ = 0;
  Cpu cpu_told_ = 0;
  // Taken for a SEND whose bytes could not be moved yet; its retry continues with it. give_up_send() gives it
  // back.
  std::optional<TakenReceive> held_;
  // The target's mover may yet copy for this request, which we gave up. So the retry goes the same way, after
  // that copy, and not through a mapping that has appeared meanwhile.
  bool behind_unfinished_ = false;
  const ReceiveCqe* behind_last_cqe_ = nullptr;
  const std::byte* behind_last_write_ = nullptr;

  // XRC, once an SRQ is selected.
  XrcCompletion* xrc_completions_ = nullptr;
  XrcCompletion* xrc_claimed_ = nullptr;
  // Takes a completion that has no slot, because a neighbour's words are nonsense.
  std::unique_ptr<ReceiveCqe> spare_cqe_;
  Qpn srqn_;
  std::uint32_t xrc_mask_ = 0, srq_incarnation_ = 0, guest_hint_ = 0;
  QpOpeners* openers_ = nullptr;
  PeerPtr keeper_;  // set once the target's process has ended
};

// Scope of one operation on the target. The target's deregister, reset and destroy wait while the hazard is
// odd; for XRC, an SRQ's process other than the target's waits while we are its guest.
class RemoteQueuePair::Operation {
 public:
  // `reaches`: the only rkey the operation may use, or any_receive.
  Operation(RemoteQueuePair& by, std::uint32_t reaches) : by_(by), ctx_(*by.ctx_) {
    // If the target was since connected to another initiator, its hazard counts that one's operations.
    if (!by.answers()) return;
    begun_as_ = ctx_.hazard.load(std::memory_order_relaxed) | 1;
    // release: a thread that sees this key sees all that our last operation wrote, and that it is over.
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

// A dead process is one that no longer answers; its end will be reported presently. A late one will answer
// when it runs again.
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
