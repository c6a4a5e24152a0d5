// The shared receive queue, owner's side: WQEs that any queue pair attached to it may take.
//
// WQEs live in a table with a private free list. Posting puts a WQE's number into the ring of claims, from
// which initiators in any process take it (remote_srq.cpp). WQEs are freed in the order in which they
// complete, so that a slow completion does not hold up the ring. Threading: post and free under `lock`;
// claims are lock-free, see segment_layout.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rnic/memory/arrived.hpp"
#include "rnic/memory/segment.hpp"
#include "rnic/memory/spin_lock.hpp"
#include "rnic/nic_parts.hpp"
#include "rnic/queue_pair/xrc_completions.hpp"

namespace weir::rnic {

class CompletionQueue;
class Tracer;

// What makes an SRQ an XRC SRQ: an XRC domain, and the CQ it completes into.
struct XrcConfig {
  std::uint64_t xrcd = 0;
  CompletionQueue* cq = nullptr;
};

class SharedReceiveQueue {
 public:
  SharedReceiveQueue(Segment&, Qpn number, std::uint32_t pd, std::uint32_t wrs, std::uint32_t sges,
                     const XrcConfig& = {});
  ~SharedReceiveQueue();
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  bool valid() const { return ctx_ != nullptr; }
  std::uint32_t index() const { return index_; }
  Qpn number() const { return number_; }  // as XRC senders address it: its process and its index
  std::uint64_t xrcd() const { return xrc_config_.xrcd; }
  XrcCompletions* completions() const { return completions_.get(); }  // nullptr: not an XRC SRQ
  CompletionQueue* cq() const { return xrc_config_.cq; }              // nullptr: not an XRC SRQ
  std::uint32_t cq_line() const { return cq_line_; }
  // An XRC SRQ: from now on senders find it, and it completes into that CQ line.
  void open(std::uint32_t cq_index, std::uint32_t cq_line);
  // For its own CQ, under that CQ's lock.
  std::size_t poll_completions(const NicParts&, std::span<WorkCompletion>);
  // From now on no new message is accepted.
  void close() { ctx_->xrcd = 0; }
  std::uint32_t pd() const { return pd_; }
  std::uint32_t max_wrs() const { return wrs_; }
  std::uint32_t max_sges() const { return sges_; }
  SrqContext& context() const { return *ctx_; }

  enum class Posted : std::uint8_t { ok, full };
  Posted post(std::uint64_t wr_id, std::span<const Sge> sges, Tracer* = nullptr);
  // True if some initiator had parked for lack of a WQE: the caller kicks those initiators.
  bool take_parked() { return ctx_->parked.exchange(0, std::memory_order_seq_cst) != 0; }

  // The memory keys of receives posted and not yet freed: what a SEND already begun may fill.
  std::vector<std::uint32_t> receive_keys();

  ReceiveWqe& wqe(std::uint32_t number) const;
  const PostedReceive& posted(std::uint32_t number) const { return posted_[number]; }
  void free_wqe(std::uint32_t number);  // after its completion was polled

  // Takes back WQEs that the killed process `dead` had claimed and not completed. `completed` holds the WQEs
  // whose completions are published: those are still to be polled.
  void reclaim(Slot dead, const std::vector<std::uint32_t>& completed);
  // The same for the one WQE that the living process `from` reports to have given up.
  void give_back(Slot from, std::uint32_t number, const std::vector<std::uint32_t>& completed);
  // An initiator stopped inside an operation may still touch the rings: they stay where they are.
  void keep_rings() { keeps_rings_.store(true, std::memory_order_relaxed); }

  std::atomic<int> attached_qps{0};
  void* cookie = nullptr;  // the caller's object, for async events

 private:
  bool ring_full() const;
  void note_claimer(std::uint32_t ring_index);
  void post_again(std::uint32_t number, Slot claimer, const std::vector<std::uint32_t>& completed);
  void post_number(std::uint32_t number);

  Segment& segment_;
  SrqContext* ctx_ = nullptr;
  Qpn number_;
  XrcConfig xrc_config_;
  std::unique_ptr<XrcCompletions> completions_;
  std::uint32_t index_, pd_, wrs_, sges_;
  // The context holds these too, for initiators; we do not read them back, because a neighbour may have
  // written there.
  std::uint64_t ring_offset_ = 0, wqe_offset_ = 0;
  std::uint32_t ring_mask_, stride_, cq_line_ = 0;
  std::atomic<std::uint64_t>* ring_ = nullptr;
  std::atomic<bool> keeps_rings_{false};
  SpinLock lock_;
  std::vector<std::uint32_t> free_;
  std::vector<Qpn> claimer_;  // which queue pair claimed each WQE, if known; Qpn(0): posted or free
  std::vector<std::uint32_t> posted_at_;  // the post count at which each WQE last entered the ring
  std::vector<PostedReceive> posted_;     // by number
  std::vector<bool> outstanding_;         // posted and not yet freed
};

}  // namespace weir::rnic
