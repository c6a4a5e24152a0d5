// The owner's side of its shared segment: hands out ring memory from behind the header.
//
// Blocks are powers of two of at least one page. Freed blocks give their pages back to the kernel, so a fresh
// block always reads as zeros and idle queue pairs cost only what they touched. Thread safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "rnic/memory/segment_layout.hpp"

namespace weir::rnic {

class Segment {
 public:
  // `base` is a shared mapping of `bytes` zeros that outlives this object.
  Segment(std::byte* base, std::size_t bytes);

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }

  // Offset of a zeroed block of at least that many bytes; 0 when the segment is full.
  std::uint64_t allocate(std::size_t bytes);
  void free(std::uint64_t offset, std::size_t bytes);

  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

 private:
  static unsigned size_class(std::size_t bytes);

  std::byte* base_;
  std::size_t bytes_;
  std::mutex mutex_;
  std::uint64_t fresh_;                              // first offset never handed out
  std::array<std::vector<std::uint64_t>, 48> free_;  // by log2 of the block size
};

}  // namespace weir::rnic
