// Where a queue pair's receive rings are in the shared segment: allocated and freed with the queue pair.
//
// Initiators find the rings through the context. The owner uses its own copy here, so nonsense that a
// neighbour writes into the context cannot mislead it. A queue pair of type rss has a hash and an indirection
// table in the same places; XRC queue pairs have neither rings nor tables, but an xrc_recv queue pair has a
// list of the processes that opened it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rnic/memory/segment.hpp"
#include "rnic/queue_pair/qp_config.hpp"

namespace weir::rnic {

class ReceiveRings {
 public:
  explicit ReceiveRings(Segment& segment) : segment_(segment) {}

  // `srq_wrs`: the number of receives in its SRQ; 0: it has no SRQ. False: the segment is full; free() what
  // was allocated.
  bool allocate(const QpConfig&, std::uint32_t srq_wrs);
  void free(QpType);
  void show(QpContext&) const;

  // Indexed by count; each wraps on its own.
  ReceiveWqe& wqe(std::uint32_t count) const {
    return *segment_.at<ReceiveWqe>(rq_offset_ + std::uint64_t{rq_stride_} * (count & rq_mask_));
  }
  std::uint32_t wqe_place(std::uint32_t count) const { return count & rq_mask_; }
  std::uint32_t wqes() const { return rq_mask_ + 1; }
  // For connected queue pairs.
  ReceiveCqe& cqe(std::uint32_t count) const {
    return segment_.at<ReceiveCqe>(cqe_offset_)[count & cqe_mask_];
  }
  // For queue pairs with datagrams.
  DatagramSlot* slots() const { return segment_.at<DatagramSlot>(cqe_offset_); }
  DatagramSlot& slot(std::uint32_t count) const { return slots()[count & cqe_mask_]; }
  std::uint32_t completions() const { return cqe_mask_ + 1; }  // CQEs, or slots
  std::uint32_t completion_mask() const { return cqe_mask_; }
  bool completes() const { return cqe_offset_ != 0; }
  std::byte* landing() const { return segment_.base() + landing_offset_; }
  std::uint32_t landing_bytes() const { return landing_mask_ == 0 ? 0 : landing_mask_ + 1; }
  QpOpeners* openers() const {
    return openers_offset_ == 0 ? nullptr : segment_.at<QpOpeners>(openers_offset_);
  }

 private:
  bool allocate_indirection(const RssConfig&);

  Segment& segment_;
  std::uint64_t rq_offset_ = 0, cqe_offset_ = 0, landing_offset_ = 0, openers_offset_ = 0;
  std::uint32_t rq_mask_ = 0, rq_stride_ = 0, cqe_mask_ = 0, landing_mask_ = 0;
};

}  // namespace weir::rnic
