#include "verbs/heap/page_heap.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>

#include "link/memory/file_size_limit.hpp"

namespace weir::heap {

bool PageHeap::open(std::size_t bytes) {
  if (!link::file_may_have(bytes)) return false;
  const std::size_t pages = bytes / page_bytes;
  fd_ = ::memfd_create("weir-heap", MFD_CLOEXEC);
  if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return close(), false;
  // Twice the size, so that the part we use can be aligned to it; what is left over stays a reservation.
  reserved_bytes_ = 2 * bytes;
  reserved_ = ::mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved_ == MAP_FAILED) return reserved_ = nullptr, close(), false;
  const std::uintptr_t aligned = (reinterpret_cast<std::uintptr_t>(reserved_) + bytes - 1) & ~(bytes - 1);
  void* const at = ::mmap(reinterpret_cast<void*>(aligned), bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd_, 0);
  void* const table = ::mmap(nullptr, pages * sizeof(Page), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table != MAP_FAILED) pages_ = static_cast<Page*>(table);
  bytes_ = bytes;
  if (at == MAP_FAILED || table == MAP_FAILED) return close(), false;
  base_ = aligned;
  top_ = std::countr_zero(pages);
  for (std::uint32_t& head : heads_) head = none;
  put(0, top_);
  return true;
}

void PageHeap::close() {
  if (pages_ != nullptr) ::munmap(pages_, bytes_ / page_bytes * sizeof(Page));
  if (reserved_ != nullptr) ::munmap(reserved_, reserved_bytes_);
  if (fd_ >= 0) ::close(fd_);
  *this = PageHeap();
}

void PageHeap::leave_to_parent() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void PageHeap::put(std::uint32_t page, int order) {
  Page& block = pages_[page];
  block = {heads_[order], none, static_cast<std::uint8_t>(order), State::free};
  if (block.next != none) pages_[block.next].previous = page;
  heads_[order] = page;
}

void PageHeap::take(std::uint32_t page) {
  Page& block = pages_[page];
  (block.previous != none ? pages_[block.previous].next : heads_[block.order]) = block.next;
  if (block.next != none) pages_[block.next].previous = block.previous;
  block.state = State::inside;
}

void* PageHeap::allocate(std::size_t bytes) {
  if (fd_ < 0 || bytes > bytes_) return nullptr;
  const std::size_t pages = bytes == 0 ? 1 : (bytes + page_bytes - 1) / page_bytes;
  const int order = std::countr_zero(std::bit_ceil(pages));
  int from = order;
  while (from <= top_ && heads_[from] == none) ++from;
  if (from > top_) return nullptr;
  const std::uint32_t page = heads_[from];
  take(page);
  while (from > order) {
    --from;
    put(page + (1u << from), from);
  }
  pages_[page].order = static_cast<std::uint8_t>(order);
  pages_[page].state = State::used;
  return reinterpret_cast<void*>(base_ + std::size_t{page} * page_bytes);
}

void PageHeap::free(void* at) {
  std::uint32_t page = page_of(at);
  if (fd_ < 0 || pages_[page].state != State::used) return;  // the parent's; freed twice, or never a block
  int order = pages_[page].order;
  ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(page) * static_cast<off_t>(page_bytes),
              static_cast<off_t>(page_bytes << order));
  pages_[page].state = State::inside;
  while (order < top_) {
    const std::uint32_t buddy = page ^ (1u << order);
    if (pages_[buddy].state != State::free || pages_[buddy].order != order) break;
    take(buddy);
    page &= ~(1u << order);
    ++order;
  }
  put(page, order);
}

std::size_t PageHeap::capacity(const void* at) const {
  const Page& block = pages_[page_of(at)];
  return block.state == State::used ? page_bytes << block.order : 0;
}

std::size_t PageHeap::free_bytes() const {
  std::size_t sum = 0;
  for (int order = 0; order <= top_; ++order)
    for (std::uint32_t page = heads_[order]; page != none; page = pages_[page].next)
      sum += page_bytes << order;
  return sum;
}

}  // namespace weir::heap
