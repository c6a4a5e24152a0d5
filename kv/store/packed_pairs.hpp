// Pairs of texts in one tight piece of memory: what a small hash (fields and values) and a small sorted set
// (members and scores) are.
//
// The elements are encoded as a listpack's (kv/store/listpack_element.hpp), without its header, which would
// be as long as a pair, and without the sizes behind the elements: pairs are found from the front, and there
// are few. The piece is as large as the heap makes it anyway, so its capacity follows from its size and need
// not be kept. Looking for a key takes time in proportion to all pairs; owners bound how many there are.
//
// A place is valid until the pairs change. Texts given to a function must not lie in these pairs. Threading:
// none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kv/store/listpack_element.hpp"

namespace weir::kv {

class PackedPairs {
 public:
  using Place = listpack::Place;  // of a pair: its key's

  // Pairs that would take more bytes belong into another form.
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  PackedPairs() = default;
  PackedPairs(PackedPairs&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)),
        used_(std::exchange(other.used_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  PackedPairs& operator=(PackedPairs&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(used_, other.used_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PackedPairs();
  PackedPairs copy() const;

  std::size_t size() const { return size_; }  // pairs
  std::size_t bytes() const { return used_; }
  std::size_t heap_size() const;

  Place begin() const { return bytes_; }
  Place end() const { return bytes_ + used_; }
  static Place value_of(Place pair) { return pair + listpack::element_bytes(pair); }
  static Place next(Place pair) { return value_of(value_of(pair)); }
  Place at(std::size_t index) const;

  // end(): it is not there.
  Place find(const listpack::Element& key) const;
  void insert(Place before, const listpack::Element& key, const listpack::Element& value);
  // Returns where the pair is now.
  Place set_value(Place pair, const listpack::Element& value);
  // Puts a pair in front of another, or at the end.
  void move(Place pair, Place before);
  // From the first pair to before the second.
  void erase(Place first, Place last, std::size_t pairs);
  void clear() { erase(begin(), end(), size_); }

 private:
  char* resize_at(std::size_t offset, std::size_t old_bytes, std::size_t new_bytes);

  char* bytes_ = nullptr;
  std::uint32_t used_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace weir::kv
