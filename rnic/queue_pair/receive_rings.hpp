// Where a queue pair's rings for what arrives are in the shared segment: made with it, freed with it.
//
// Initiators find them by the context. Their owner goes by this copy of its own, so that nonsense that a
// neighbour writes into the context leads it nowhere. A queue pair of type rss has a hash and an indirection
// table in the same places; XRC queue pairs have none, and one of xrc_recv a list of those who opened it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rnic/memory/segment.hpp"
#include "rnic/queue_pair/qp_config.hpp"

namespace weir::rnic {

class ReceiveRings {
 public:
  explicit ReceiveRings(Segment& segment) : segment_(segment) {}

  // `srq_wrs`: how many receives its SRQ has; 0: it has none. False: the segment is full; free() what there
  // is.
  bool allocate(const QpConfig&, std::uint32_t srq_wrs);
  void free(QpType);
  void show(QpContext&) const;

  // By their counts; each wraps by itself.
  ReceiveWqe& wqe(std::uint32_t count) const {
    return *segment_.at<ReceiveWqe>(rq_offset_ + std::uint64_t{rq_stride_} * (count & rq_mask_));
  }
  std::uint32_t wqe_place(std::uint32_t count) const { return count & rq_mask_; }
  std::uint32_t wqes() const { return rq_mask_ + 1; }
  // Of connected queue pairs.
  ReceiveCqe& cqe(std::uint32_t count) const {
    return segment_.at<ReceiveCqe>(cqe_offset_)[count & cqe_mask_];
  }
  // Of those with datagrams.
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
