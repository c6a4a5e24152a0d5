// Two owners of raw bytes.
//
// `Buffer` is a block of fixed size whose owner may be anybody: attachments travel in it, from the socket to
// the function and back, without a copy, and large frames wait in it to be sent. `Bytes` grows at its end
// without filling what it grows by: frames are encoded into it. What it gives back, if large, is kept for the
// next (block_cache.hpp). Threading: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace weir::rpc {

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class Buffer {
 public:
  using Release = void (*)(void* owner, std::byte* data, std::size_t size);

  Buffer() = default;
  explicit Buffer(std::size_t size);  // uninitialised
  // Memory of another owner, which is told when the memory is no longer used (from the connection's thread).
  Buffer(std::span<std::byte> memory, Release release, void* owner)
      : data_(memory.data()), size_(memory.size()), release_(release), owner_(owner) {}
  // Memory that outlives every use, and stays unchanged until then: it may be sent in place and, over RDMA,
  // if the memory came from the connection, whenever the peer fetches it.
  static Buffer borrowed(std::span<const std::byte> memory) {
    return {{const_cast<std::byte*>(memory.data()), memory.size()}, nullptr, nullptr};
  }
  static Buffer copy_of(std::span<const std::byte> memory);
  static Buffer copy_of(std::string_view text) { return copy_of(as_bytes(text)); }

  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        release_(std::exchange(other.release_, nullptr)),
        owner_(other.owner_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    reset();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    release_ = std::exchange(other.release_, nullptr);
    owner_ = other.owner_;
    return *this;
  }
  ~Buffer() { reset(); }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<std::byte> span() { return {data_, size_}; }
  std::span<const std::byte> span() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

  void reset() {
    if (release_ != nullptr) release_(owner_, data_, size_);
    data_ = nullptr;
    size_ = 0;
    release_ = nullptr;
  }

 private:
  friend class Bytes;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Release release_ = nullptr;
  void* owner_ = nullptr;
};

class Bytes {
 public:
  Bytes() = default;
  // Starts empty, with another owner's memory to grow into. Beyond that it moves to memory of its own.
  explicit Bytes(Buffer block)
      : data_(std::exchange(block.data_, nullptr)),
        capacity_(block.size_),
        release_(std::exchange(block.release_, nullptr)),
        owner_(block.owner_) {}
  Bytes(Bytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)),
        release_(std::exchange(other.release_, nullptr)),
        owner_(other.owner_) {}
  Bytes& operator=(Bytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(release_, other.release_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~Bytes() {
    if (data_ != nullptr) release();
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  std::span<const std::byte> span() const { return {data_, size_}; }

  // `count` more bytes, of unspecified value; valid until the next growth.
  std::byte* grow(std::size_t count) {
    if (size_ + count > capacity_) reserve(size_ + count);
    std::byte* place = data_ + size_;
    size_ += count;
    return place;
  }
  void append(std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(grow(bytes.size()), bytes.data(), bytes.size());
  }
  void truncate(std::size_t size) { size_ = size; }
  void clear() { size_ = 0; }
  void reserve(std::size_t capacity);
  void erase_front(std::size_t count) {
    std::memmove(data_, data_ + count, size_ - count);
    size_ -= count;
  }
  // Gives back memory beyond `most`, when empty.
  void shrink(std::size_t most);
  // What is in it, in the memory where it is; it is empty afterwards.
  Buffer take();

 private:
  void release();

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  Buffer::Release release_ = nullptr;  // null: memory of its own, from and to block_cache
  void* owner_ = nullptr;
};

}  // namespace weir::rpc
