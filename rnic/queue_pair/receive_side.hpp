// A queue pair's receive side: what was posted, what arrived, and, once it has failed, what is flushed.
//
// The owner's half alone: what initiators do to the rings is in same_host/ and datagrams/. What arrives lies
// in CQEs or, where anybody may send, in datagram slots. Receives complete in order; in the error state what
// is still posted completes as flushed, behind the last that arrived.
//
// Threading: post() and doorbell() under lock(); poll(), unpolled() and the like under the lock of the CQ;
// flush(), reset() and the rest from whoever changes the queue pair's state, under its send lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rnic/datagrams/datagram_slots.hpp"
#include "rnic/queue_pair/receive_completions.hpp"
#include "rnic/queue_pair/receive_queue.hpp"
#include "rnic/queue_pair/receive_rings.hpp"

namespace weir::rnic {

class ReceiveSide {
 public:
  explicit ReceiveSide(const QpCommon& qp)
      : qp_(qp),
        rings_(qp.nic.segment),
        queue_(qp, rings_),
        completions_(qp, rings_, queue_),
        slots_(qp, rings_, queue_) {}
  ReceiveSide(const ReceiveSide&) = delete;
  ReceiveSide& operator=(const ReceiveSide&) = delete;

  // Rings in the segment, shown in the context. False: there is no room for them.
  bool allocate();
  void free();
  QpOpeners* openers() const { return rings_.openers(); }

  SpinLock& lock() { return queue_.lock(); }
  PostResult post(std::uint64_t wr_id, std::span<const Sge>);
  // Publishes what was written and kicks an initiator that waits for it.
  void doorbell();

  std::size_t poll(std::span<WorkCompletion>);
  std::size_t unpolled() const;  // what poll() would find, unlimited
  void prefetch() const {
    if (!is_datagram(qp_.config.type)) completions_.prefetch();
  }
  void expect(const void* cqe, const void* write) { completions_.expect(cqe, write); }

  // From now on what is posted completes as flushed.
  void flush();
  bool flushing() const { return flushing_.load(std::memory_order_relaxed); }
  // Wakes whoever sleeps on the CQ if there is something to poll. Takes the CQ's lock, `polls`: a process may
  // be killed between a completion that it wrote and the wake-up for it.
  void announce_unpolled(SpinLock& polls) const;

  // Datagrams with an SRQ: senders may come.
  void open_slots_of_srq();
  void void_claims_of(Slot dead) { slots_.void_claims_of(dead); }

  // Between polls: as it was made.
  void reset();
  // The WQEs of our SRQ whose completions stand in our ring, to be polled.
  void append_completed(std::vector<std::uint32_t>&) const;
  // Completions that nobody will poll any more: their receives belong to the SRQ again.
  void give_back_unpolled();
  // The keys of the memory that a SEND which began already may fill; nullopt: not known, any.
  std::optional<std::vector<std::uint32_t>> keys();

 private:
  std::size_t arrived() const;
  void count(std::span<const WorkCompletion> polled);

  const QpCommon& qp_;
  ReceiveRings rings_;
  ReceiveQueue queue_;
  ReceiveCompletions completions_;
  DatagramSlots slots_;
  std::atomic<bool> flushing_{false};
};

}  // namespace weir::rnic
