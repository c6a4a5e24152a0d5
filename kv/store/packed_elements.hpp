// Elements in one tight piece of memory: what small hashes, sets and sorted sets lie in.
//
// They are encoded as a listpack's (kv/store/listpack_element.hpp), without its header, which would be as
// long as a pair, and without the sizes behind the elements: elements are found from the front, and there are
// few. The piece is as large as the heap makes it anyway, so its capacity follows from its size and need not
// be kept. An entry is as many elements as the derived class says.
//
// A place is valid until the elements change. Texts given to a function must not lie in them. Threading:
// none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kv/store/listpack_element.hpp"

namespace weir::kv {

class PackedElements {
 public:
  using Place = listpack::Place;  // of an entry's first element

  // Elements that would take more bytes belong into another form.
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  PackedElements() = default;
  PackedElements(PackedElements&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)),
        used_(std::exchange(other.used_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  PackedElements& operator=(PackedElements&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(used_, other.used_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PackedElements();

  std::size_t size() const { return size_; }  // entries
  std::size_t bytes() const { return used_; }
  std::size_t heap_size() const;

  Place begin() const { return bytes_; }
  Place end() const { return bytes_ + used_; }

  // From the first entry to before the second.
  void erase(Place first, Place last, std::size_t entries);
  void clear() { erase(begin(), end(), size_); }

 protected:
  void copy_from(const PackedElements& other);
  // Makes the bytes at `offset`, as many as there were, as many as there shall be; returns their address.
  char* resize_at(std::size_t offset, std::size_t old_bytes, std::size_t new_bytes);
  char* address_of(Place place) { return bytes_ + (place - bytes_); }

  char* bytes_ = nullptr;
  std::uint32_t used_ = 0;
  std::uint32_t size_ = 0;
};

// Pairs of texts: what a small hash (fields and values) and a small sorted set (members and scores) are.
//
// Looking for a key takes time in proportion to all pairs; owners bound how many there are.
class PackedPairs : public PackedElements {
 public:
  PackedPairs copy() const;

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
};

// Texts in the order they came: what a small set is. Looking for one takes time in proportion to all.
class PackedMembers : public PackedElements {
 public:
  PackedMembers copy() const {
    PackedMembers other;
    other.copy_from(*this);
    return other;
  }

  static Place next(Place member) { return member + listpack::element_bytes(member); }
  Place at(std::size_t index) const {
    Place member = begin();
    for (; index != 0; --index) member = next(member);
    return member;
  }

  // end(): it is not there.
  Place find(const listpack::Element& member) const {
    Place place = begin();
    const Place last = end();
    while (place != last && !member.is_at(place)) place = next(place);
    return place;
  }
  void append(const listpack::Element& member) {
    member.put(resize_at(used_, 0, member.size()));
    ++size_;
  }
};

}  // namespace weir::kv
