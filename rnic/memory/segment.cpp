#include "rnic/memory/segment.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace weir::rnic {

Segment::Segment(std::byte* base, std::size_t bytes)
    : base_(base), bytes_(bytes), fresh_(segment_rings_offset) {
  header().bytes = bytes;
  for (AtomicLock& lock : header().atomic_locks) lock.make();
  header().magic = segment_magic;
}

unsigned Segment::size_class(std::size_t bytes) {
  return static_cast<unsigned>(std::bit_width(std::max<std::size_t>(bytes, 4096) - 1));
}

std::uint64_t Segment::allocate(std::size_t bytes) {
  const unsigned log2 = size_class(bytes);
  const std::lock_guard lock(mutex_);
  if (log2 >= free_.size()) return 0;
  if (!free_[log2].empty()) {
    const std::uint64_t offset = free_[log2].back();
    free_[log2].pop_back();
    return offset;
  }
  if ((1ull << log2) > bytes_ - fresh_) return 0;
  const std::uint64_t offset = fresh_;
  fresh_ += 1ull << log2;
  return offset;
}

void Segment::free(std::uint64_t offset, std::size_t bytes) {
  const unsigned log2 = size_class(bytes);
  // MADV_REMOVE punches the pages out of the file: they read as zeros for the next user, also in neighbours.
  ::madvise(base_ + offset, 1ull << log2, MADV_REMOVE);
  const std::lock_guard lock(mutex_);
  free_[log2].push_back(offset);
}

}  // namespace weir::rnic
