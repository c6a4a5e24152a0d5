// A queue pair's own receive queue, the owner's side: receives posted but not yet polled.
//
//   polled <= published <= tail      (all count WQEs ever)
//
//   tail       written by post(); beyond `published` only until the doorbell
//   published  initiators may take these
//   polled     reported; their entries are free again
//
// Threading: post(), publish() and keys() under lock(), or try_lock() of it; polled() moves under the CQ's
// lock. With a shared receive queue nothing is posted here.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "rnic/memory/arrived.hpp"
#include "rnic/memory/spin_lock.hpp"
#include "rnic/queue_pair/qp_common.hpp"
#include "rnic/queue_pair/receive_rings.hpp"

namespace weir::rnic {

class ReceiveQueue {
 public:
  ReceiveQueue(const QpCommon& qp, const ReceiveRings& rings) : qp_(qp), rings_(rings) {}

  // Call once the rings exist.
  void allocate() { posted_.resize(rings_.wqes()); }
  SpinLock& lock() { return lock_; }
  PostResult post(std::uint64_t wr_id, std::span<const Sge>);
  std::uint32_t tail() const { return tail_; }
  std::uint32_t published() const { return published_; }
  void publish() { published_ = tail_; }

  const PostedReceive& posted(std::uint32_t count) const { return posted_[rings_.wqe_place(count)]; }
  std::uint32_t polled() const { return polled_.load(std::memory_order_relaxed); }
  // One writer, under the CQ's lock: no locked instruction.
  void polled_up_to(std::uint32_t count) { polled_.store(count, std::memory_order_release); }
  // Polls posted, unpolled receives as flushed.
  std::size_t poll_flushed(std::span<WorkCompletion>);
  // The memory keys of posted, unpolled receives.
  std::vector<std::uint32_t> keys() const;
  // Between polls.
  void reset();

 private:
  const QpCommon& qp_;
  const ReceiveRings& rings_;
  SpinLock lock_;
  std::vector<PostedReceive> posted_;  // the receives in the ring, by index
  std::uint32_t tail_ = 0;
  std::uint32_t published_ = 0;
  std::atomic<std::uint32_t> polled_{0};
};

}  // namespace weir::rnic
