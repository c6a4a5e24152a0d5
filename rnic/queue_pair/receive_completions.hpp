// What arrived on a connected queue pair: the owner's side of its completion ring.
//
// CQEs published by the initiator become work completions, in order; payload that came inside the CQE or
// through the landing ring is scattered into the posted buffers here. Threading: under the lock of the CQ
// that the queue pair's receives complete into; expect() from the thread that executes its sends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rnic/queue_pair/receive_queue.hpp"

namespace weir::rnic {

class ReceiveCompletions {
 public:
  ReceiveCompletions(const QpCommon& qp, const ReceiveRings& rings, ReceiveQueue& queue)
      : qp_(qp), rings_(rings), queue_(queue) {}

  std::size_t poll(std::span<WorkCompletion>);
  // What poll() would find without a limit.
  std::size_t unpolled() const;
  // The WQEs of our SRQ whose completions in the ring are not yet polled.
  void append_completed(std::vector<std::uint32_t>&) const;
  // Called before poll(): fetches the next CQE from the core that wrote it.
  void prefetch() const;
  // Where the answer to the next message will probably be written at the initiator: its next CQE, and after
  // its last RDMA WRITE. Hints; they may be stale.
  void expect(const void* cqe, const void* write) {
    likely_cqe_.store(cqe, std::memory_order_relaxed);
    likely_write_.store(write, std::memory_order_relaxed);
  }
  // Between polls.
  void reset();

 private:
  WcStatus scatter_payload(const ArrivedCqe&, const ReceiveWqe&);
  bool scatter(const ReceiveWqe&, std::span<const std::byte>) const;
  void fail_by_own_memory() const;
  void show_polled(std::uint32_t receives);

  const QpCommon& qp_;
  const ReceiveRings& rings_;
  ReceiveQueue& queue_;
  std::uint32_t polled_ = 0;
  const std::byte* likely_landing_ = nullptr;  // of the next message
  std::atomic<const void*> likely_cqe_{nullptr}, likely_write_{nullptr};
};

}  // namespace weir::rnic
