// Byte strings as the store keeps them: short ones inline, long ones in a shared, counted block.
//
// Blob   a heap block with a reference count. A reply may hold a reference to a stored value, so a large
//        value goes from the store to the socket without a copy. Code that changes a shared block
//        copies it first.
// Bytes  24 bytes: up to 22 bytes inline, else a Blob.
//
// Threading: none of this is thread safe; everything that counts references runs on the server's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "kv/text/heap.hpp"

namespace weir::kv {

struct Blob {
  std::uint32_t references;
  std::size_t size;
  std::size_t capacity;

  char* data() { return reinterpret_cast<char*>(this + 1); }
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  std::string_view view() const { return {data(), size}; }

  // One reference, contents undefined. Throws std::bad_alloc.
  static Blob* make(std::size_t size, std::size_t capacity) {
    return new (allocate(sizeof(Blob) + capacity)) Blob{1, size, capacity};
  }
  // Likewise, empty, and as large as the heap makes it anyway.
  static Blob* make_roomy(std::size_t capacity) {
    Blob* const block = make(0, capacity);
    block->capacity = kv::heap_size(block) - sizeof(Blob);
    return block;
  }
  std::size_t memory() const { return sizeof(Blob) + capacity; }
  // For a block that is not shared. Callers with its old address must use the returned one.
  static Blob* with_capacity(Blob* unshared, std::size_t capacity) {
    auto* const grown = static_cast<Blob*>(resized(unshared, sizeof(Blob) + capacity));
    grown->capacity = capacity;
    return grown;
  }
  void drop() {
    if (--references == 0) free_allocated(this);
  }
};

// One reference to a Blob, or none.
class BlobRef {
 public:
  BlobRef() = default;
  explicit BlobRef(Blob* adopted) : blob_(adopted) {}
  static BlobRef share(Blob* blob) {
    ++blob->references;
    return BlobRef(blob);
  }
  BlobRef(BlobRef&& other) noexcept : blob_(std::exchange(other.blob_, nullptr)) {}
  BlobRef& operator=(BlobRef&& other) noexcept {
    if (this != &other) reset(std::exchange(other.blob_, nullptr));
    return *this;
  }
  ~BlobRef() { reset(); }

  Blob* get() const { return blob_; }
  Blob* operator->() const { return blob_; }
  explicit operator bool() const { return blob_ != nullptr; }
  Blob* release() { return std::exchange(blob_, nullptr); }
  void reset(Blob* adopted = nullptr) {
    if (blob_ != nullptr) blob_->drop();
    blob_ = adopted;
  }

 private:
  Blob* blob_ = nullptr;
};

class Bytes {
 public:
  static constexpr std::size_t inline_capacity = 22;

  Bytes() { set_inline_size(0); }
  explicit Bytes(std::string_view text) { init(text); }
  explicit Bytes(BlobRef blob) { set_blob(blob.release()); }
  Bytes(const Bytes& other) {
    if (other.is_blob()) {
      ++other.blob()->references;
      set_blob(other.blob());
    } else {
      std::memcpy(raw_, other.raw_, sizeof raw_);
    }
  }
  Bytes(Bytes&& other) noexcept {
    std::memcpy(raw_, other.raw_, sizeof raw_);
    other.set_inline_size(0);
  }
  Bytes& operator=(Bytes other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Bytes() {
    if (is_blob()) blob()->drop();
  }

  std::size_t size() const { return is_blob() ? blob()->size : tag(); }
  const char* data() const { return is_blob() ? blob()->data() : raw_; }
  std::string_view view() const { return {data(), size()}; }
  // The shared block, for passing the bytes on by reference; null for a short string.
  Blob* shared() const { return is_blob() ? blob() : nullptr; }

  void assign(std::string_view text) {
    if (text.size() <= inline_capacity && !is_blob()) {
      std::memmove(raw_, text.data(), text.size());
      set_inline_size(text.size());
    } else {
      reassign(text);
    }
  }
  void append(std::string_view text);
  // Grows with zero bytes (never shrinks) and returns the bytes for writing; unshares first.
  char* grow_zeroed(std::size_t size);
  // Heap bytes of this string, besides its own 24.
  std::size_t heap_size() const { return is_blob() ? sizeof(Blob) + blob()->capacity : 0; }

  friend bool operator==(const Bytes& a, std::string_view b) { return a.view() == b; }

 private:
  static constexpr unsigned char blob_tag = 0xff;

  unsigned char tag() const { return static_cast<unsigned char>(raw_[23]); }
  bool is_blob() const { return tag() == blob_tag; }
  Blob* blob() const {
    Blob* p;
    std::memcpy(&p, raw_, sizeof p);
    return p;
  }
  void set_inline_size(std::size_t n) { raw_[23] = static_cast<char>(n); }
  void set_blob(Blob* p) {
    std::memcpy(raw_, &p, sizeof p);
    raw_[23] = static_cast<char>(blob_tag);
  }
  void init(std::string_view text) {
    if (text.size() <= inline_capacity) {
      std::memcpy(raw_, text.data(), text.size());
      set_inline_size(text.size());
    } else {
      Blob* b = Blob::make(text.size(), text.size());
      std::memcpy(b->data(), text.data(), text.size());
      set_blob(b);
    }
  }
  void reassign(std::string_view text);
  // For a string that has, or becomes, a block: makes it unshared, with at least that capacity.
  void own_block(std::size_t capacity);

  alignas(8) char raw_[24];
};
static_assert(sizeof(Bytes) == 24);

}  // namespace weir::kv
