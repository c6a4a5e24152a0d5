// A queue pair's send side: posted WQEs, and how many of them are done.
//
// Work requests become WQEs in the send ring, and the doorbell publishes them. Whichever part executes them
// (the requester, or packets to another host) completes them here, in order. Polling turns them into work
// completions.
//
// Threading: everything under lock(), from the first append() to publish(); poll() and unpolled() under the
// CQ's lock instead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "rnic/memory/spin_lock.hpp"
#include "rnic/queue_pair/qp_common.hpp"
#include "rnic/queue_pair/send_queue.hpp"

namespace weir::rnic {

class SendSide {
 public:
  explicit SendSide(const QpCommon&);
  SendSide(const SendSide&) = delete;
  SendSide& operator=(const SendSide&) = delete;

  bool allocated() const { return ring_.allocated(); }
  SpinLock& lock() { return lock_; }

  // ---- posting
  // nullptr: the result holds the reason.
  SendWqe* append(const SendRequest&, PostResult&);
  PostResult set_sges(SendWqe&, std::span<const Sge>) const;
  PostResult add_inline(SendWqe&, std::span<const std::byte> piece) const;
  void retract() { --ring_.tail; }
  void retract_all() { ring_.tail = ring_.doorbell; }
  // The doorbell: releases the appended WQEs for execution.
  void publish();

  // ---- executing
  SendWqe& at(std::uint32_t count) const { return ring_.at(count); }
  std::uint32_t executed() const { return ring_.executed.load(std::memory_order_relaxed); }
  std::uint32_t doorbell() const { return ring_.doorbell; }
  bool all_executed() const { return executed() == ring_.doorbell; }
  SendWqe& next() const { return ring_.at(executed()); }
  void prefetch_next() const { ring_.prefetch_next(); }
  // The most recently posted WQE is the only one outstanding.
  bool has_one_outstanding() const {
    return ring_.doorbell - ring_.polled.load(std::memory_order_relaxed) == 1;
  }
  void complete(SendWqe&, WcStatus);
  // Completes the WQE with its error, and moves the queue pair to the error state.
  void fail(SendWqe&, WcStatus);
  void flush();

  // ---- draining: in SQD, and the requests that were in progress on entry are not yet over
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  void set_draining(bool draining) { draining_.store(draining, std::memory_order_release); }
  void drained();

  // ---- polling
  std::size_t poll(std::span<WorkCompletion>);
  std::size_t unpolled() const;  // what poll() would find without a limit

  // Called between polls: restores the initial state.
  void reset();

 private:
  const QpCommon& qp_;
  SpinLock lock_;
  SendQueue ring_;
  std::atomic<bool> draining_{false};
  // Polling does not look at a WQE twice: with one signal for hundreds of writes, walking the unsignalled
  // ones again in each poll would cost more than everything else.
  std::uint32_t scanned_ = 0;
};

}  // namespace weir::rnic
