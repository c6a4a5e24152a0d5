#include "kv/store/packed_pairs.hpp"

#include <algorithm>
#include <cstring>

#include "kv/heap.hpp"
#include "kv/store/tight_room.hpp"

namespace weir::kv {

PackedPairs::~PackedPairs() {
  if (bytes_ != nullptr) free_allocated(bytes_);
}

PackedPairs PackedPairs::copy() const {
  PackedPairs other;
  if (used_ == 0) return other;
  other.bytes_ = static_cast<char*>(allocate(tight_capacity(used_)));
  std::memcpy(other.bytes_, bytes_, used_);
  other.used_ = used_;
  other.size_ = size_;
  return other;
}

std::size_t PackedPairs::heap_size() const { return tight_capacity(used_); }

PackedPairs::Place PackedPairs::at(std::size_t index) const {
  Place pair = begin();
  for (; index != 0; --index) pair = next(pair);
  return pair;
}

PackedPairs::Place PackedPairs::find(const listpack::Element& key) const {
  Place pair = begin();
  const Place last = end();
  while (pair != last && !key.is_at(pair)) pair = next(pair);
  return pair;
}

// Makes the bytes at `offset`, as many as there were, as many as there shall be; returns their address.
char* PackedPairs::resize_at(std::size_t offset, std::size_t old_bytes, std::size_t new_bytes) {
  const std::size_t before = used_;
  const std::size_t after = before - old_bytes + new_bytes;
  const std::size_t behind = before - offset - old_bytes;
  const std::size_t capacity = tight_capacity(after);
  if (new_bytes > old_bytes && capacity != tight_capacity(before)) {
    bytes_ = static_cast<char*>(bytes_ == nullptr ? allocate(capacity) : resized(bytes_, capacity));
  }
  char* at = bytes_ + offset;
  if (behind != 0 && old_bytes != new_bytes) std::memmove(at + new_bytes, at + old_bytes, behind);
  used_ = static_cast<std::uint32_t>(after);
  if (after == 0 && bytes_ != nullptr) {
    free_allocated(std::exchange(bytes_, nullptr));
  } else if (new_bytes < old_bytes && capacity != tight_capacity(before)) {
    bytes_ = static_cast<char*>(resized(bytes_, capacity));
  }
  return bytes_ + offset;
}

void PackedPairs::insert(Place before, const listpack::Element& key, const listpack::Element& value) {
  char* at = resize_at(static_cast<std::size_t>(before - bytes_), 0, key.size() + value.size());
  value.put(key.put(at));
  ++size_;
}

PackedPairs::Place PackedPairs::set_value(Place pair, const listpack::Element& value) {
  const auto offset = pair - bytes_;
  const Place old = value_of(pair);
  value.put(resize_at(static_cast<std::size_t>(old - bytes_), listpack::element_bytes(old), value.size()));
  return bytes_ + offset;
}

void PackedPairs::move(Place pair, Place before) {
  char* const first = bytes_ + (pair - bytes_);
  char* const last = bytes_ + (next(pair) - bytes_);
  char* const to = bytes_ + (before - bytes_);
  if (to < first) std::rotate(to, first, last);
  if (to > last) std::rotate(first, last, to);
}

void PackedPairs::erase(Place first, Place last, std::size_t pairs) {
  size_ -= static_cast<std::uint32_t>(pairs);
  resize_at(static_cast<std::size_t>(first - bytes_), static_cast<std::size_t>(last - first), 0);
}

}  // namespace weir::kv
