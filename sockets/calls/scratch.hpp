// Memory for the length of one call. Not from the heap, because poll() and select() may be called by a signal
// handler that interrupted malloc(). A little of it lies in the object, more in pages of its own.
//
// Threading: the calling thread alone.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace weir::sockets {

class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : bytes_(bytes) {
    if (bytes <= few_.size()) return;
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages_ = pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
  }
  ~Scratch() {
    if (pages_ != nullptr) ::munmap(pages_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  explicit operator bool() const { return bytes_ <= few_.size() || pages_ != nullptr; }
  // Aligned for any type. All that is taken must fit into the bytes asked for.
  std::byte* take(std::size_t bytes) {
    std::byte* const all = pages_ != nullptr ? pages_ : few_.data();
    return all + std::exchange(taken_, taken_ + rounded(bytes));
  }
  static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
  }

 private:
  const std::size_t bytes_;
  std::size_t taken_ = 0;
  std::byte* pages_ = nullptr;
  alignas(std::max_align_t) std::array<std::byte, 1536> few_;
};

// A vector of limited length in such memory.
template <class T>
class Row {
 public:
  static constexpr std::size_t bytes_for(std::size_t most) { return Scratch::rounded(most * sizeof(T)); }

  Row(Scratch& scratch, std::size_t most) : first_(reinterpret_cast<T*>(scratch.take(bytes_for(most)))) {}
  ~Row() { clear(); }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    return *new (first_ + count_++) T(std::forward<Arguments>(arguments)...);
  }
  void pop_back() { std::destroy_at(first_ + --count_); }
  void clear() {
    while (count_ > 0) pop_back();
  }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  T& operator[](std::size_t at) { return first_[at]; }
  T& back() { return first_[count_ - 1]; }
  T* begin() { return first_; }
  T* end() { return first_ + count_; }
  const T* begin() const { return first_; }
  const T* end() const { return first_ + count_; }

 private:
  T* const first_;
  std::size_t count_ = 0;
};

}  // namespace weir::sockets
