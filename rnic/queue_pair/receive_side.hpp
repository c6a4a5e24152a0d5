// A queue pair's receive side: posted receives, arrived messages and, once it has failed, flushed receives.
//
// The owner's half only: what initiators do to the rings is in same_host/ and datagrams/. Arrivals are in
// CQEs or, where any process may send, in datagram slots. Receives complete in order; in the error state,
// receives still posted complete as flushed, after the last one that arrived.
//
// Threading: post() and doorbell() under lock(); poll(), unpolled() and the like under the CQ's lock;
// flush(), reset() and the rest from the thread that changes the queue pair's state, under its send lock.
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

  // Allocates the rings in the segment and enters them in the context. False: there is no room for them.
  bool allocate();
  void free();
  QpOpeners* openers() const { return rings_.openers(); }

  SpinLock& lock() { return queue_.lock(); }
  PostResult post(std::uint64_t wr_id, std::span<const Sge>);
  // Publishes the posted receives and kicks an initiator that waits for one.
  void doorbell();

  std::size_t poll(std::span<WorkCompletion>);
  std::size_t unpolled() const;  // what poll() would find without a limit
  void prefetch() const {
    if (!is_datagram(qp_.config.type)) completions_.prefetch();
  }
  void expect(const void* cqe, const void* write) { completions_.expect(cqe, write); }

  // From now on, posted receives complete as flushed.
  void flush();
  bool flushing() const { return flushing_.load(std::memory_order_relaxed); }
  // Wakes a sleeper on the CQ if there is something to poll. Takes the CQ's lock, `polls`: a process may be
  // killed after writing a completion and before waking the sleeper.
  void announce_unpolled(SpinLock& polls) const;

  // Datagrams with an SRQ: lets senders in.
  void open_slots_of_srq();
  void void_claims_of(Slot dead) { slots_.void_claims_of(dead); }

  // Called between polls: restores the initial state.
  void reset();
  // The WQEs of our SRQ whose completions in our ring are not yet polled.
  void append_completed(std::vector<std::uint32_t>&) const;
  // Gives the receives of completions that will never be polled back to the SRQ.
  void give_back_unpolled();
  // The keys of memory that a SEND already begun may fill; nullopt: unknown, so any.
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
