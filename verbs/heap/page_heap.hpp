// Pages of one shared file, allocated by the buddy system.
//
// Shape: blocks are 2^k pages, aligned to their size, and named by address. A fresh block is zero: what is
// freed is punched out of the file. Only address space is reserved; pages appear as they are touched. Nothing
// here allocates with malloc, because malloc calls it. Threading: the caller serialises
// (allocation_calls.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::heap {

inline constexpr std::size_t page_bytes = 4096;

class PageHeap {
 public:
  // `bytes`: a power of two. False: no memory, or a limit on address space or file size forbids it.
  bool open(std::size_t bytes);
  void close();
  // In a forked child: the blocks are the parent's as much as ours. They stay usable, but none is given out
  // or back any more, since the parent's books would not know of it.
  void leave_to_parent();

  // nullptr when it is full. The address is a multiple of the block's size, so of any alignment up to that.
  void* allocate(std::size_t bytes);
  // `at` came from allocate().
  void free(void* at);
  // How much `at`'s block holds.
  std::size_t capacity(const void* at) const;
  bool holds(const void* at) const {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return address - base_ < bytes_;
  }
  std::size_t free_bytes() const;

 private:
  static constexpr std::uint32_t none = 0xffffffff;
  static constexpr int orders = 32;
  enum class State : std::uint8_t { inside, free, used };  // inside: not the first page of a block
  struct Page {
    std::uint32_t next, previous;  // of the free blocks of one order
    std::uint8_t order;
    State state;
  };

  void put(std::uint32_t page, int order);
  void take(std::uint32_t page);
  std::uint32_t page_of(const void* at) const {
    return static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(at) - base_) / page_bytes);
  }

  int fd_ = -1;
  std::uintptr_t base_ = 0;
  std::size_t bytes_ = 0;
  void* reserved_ = nullptr;  // the mapping, from which base_ is the aligned part
  std::size_t reserved_bytes_ = 0;
  Page* pages_ = nullptr;
  int top_ = 0;  // the order of the whole heap
  std::uint32_t heads_[orders] = {};
};

}  // namespace weir::heap
