// A queue pair's send side: what was posted, and what of it is done.
//
// Work requests become WQEs in the send ring, and the doorbell publishes them; who executes them (requester,
// or packets to another host) completes them here, in order; polling turns them into work completions.
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
  // nullptr: the result says why.
  SendWqe* append(const SendRequest&, PostResult&);
  PostResult set_sges(SendWqe&, std::span<const Sge>) const;
  PostResult add_inline(SendWqe&, std::span<const std::byte> piece) const;
  void retract() { --ring_.tail; }
  void retract_all() { ring_.tail = ring_.doorbell; }
  // The doorbell: what was appended is to be executed.
  void publish();

  // ---- executing
  SendWqe& at(std::uint32_t count) const { return ring_.at(count); }
  std::uint32_t executed() const { return ring_.executed.load(std::memory_order_relaxed); }
  std::uint32_t doorbell() const { return ring_.doorbell; }
  bool all_executed() const { return executed() == ring_.doorbell; }
  SendWqe& next() const { return ring_.at(executed()); }
  void prefetch_next() const { ring_.prefetch_next(); }
  // Nothing else is outstanding than the one that was posted last.
  bool has_one_outstanding() const {
    return ring_.doorbell - ring_.polled.load(std::memory_order_relaxed) == 1;
  }
  void complete(SendWqe&, WcStatus);
  // Completes it with its error, and takes the queue pair to the error state.
  void fail(SendWqe&, WcStatus);
  void flush();

  // ---- draining: in sqd, and the requests that it found under way are not yet over
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  void set_draining(bool draining) { draining_.store(draining, std::memory_order_release); }
  void drained();

  // ---- polling
  std::size_t poll(std::span<WorkCompletion>);
  std::size_t unpolled() const;  // what poll() would find, unlimited

  // Between polls: as it was made.
  void reset();

 private:
  const QpCommon& qp_;
  SpinLock lock_;
  SendQueue ring_;
  std::atomic<bool> draining_{false};
  // What polling has looked at stays looked at: with one signal for hundreds of writes, walking the
  // unsignalled ones again in each poll would cost more than everything else.
  std::uint32_t scanned_ = 0;
};

}  // namespace weir::rnic
