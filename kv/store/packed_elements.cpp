#include "kv/store/packed_elements.hpp"

#include <algorithm>
#include <cstring>

#include "kv/store/tight_room.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {

PackedElements::~PackedElements() {
  if (bytes_ != nullptr) free_allocated(bytes_);
}

void PackedElements::copy_from(const PackedElements& other) {
  if (other.used_ == 0) return;
  bytes_ = static_cast<char*>(allocate(tight_capacity(other.used_)));
  std::memcpy(bytes_, other.bytes_, other.used_);
  used_ = other.used_;
  size_ = other.size_;
}

std::size_t PackedElements::heap_size() const { return tight_capacity(used_); }

char* PackedElements::resize_at(std::size_t offset, std::size_t old_bytes, std::size_t new_bytes) {
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

void PackedElements::erase(Place first, Place last, std::size_t entries) {
  size_ -= static_cast<std::uint32_t>(entries);
  resize_at(static_cast<std::size_t>(first - bytes_), static_cast<std::size_t>(last - first), 0);
}

PackedPairs PackedPairs::copy() const {
  PackedPairs other;
  other.copy_from(*this);
  return other;
}

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
  char* const first = address_of(pair);
  char* const last = address_of(next(pair));
  char* const to = address_of(before);
  if (to < first) std::rotate(to, first, last);
  if (to > last) std::rotate(first, last, to);
}

}  // namespace weir::kv
