#include "rpc/bytes.hpp"

#include <algorithm>

namespace weir::rpc {

void Bytes::reserve(std::size_t capacity) {
  if (capacity <= capacity_) return;
  capacity = std::max({capacity, capacity_ * 2, std::size_t{256}});
  auto* data = static_cast<std::byte*>(::operator new(capacity));
  if (size_ > 0) std::memcpy(data, data_, size_);
  ::operator delete(data_);
  data_ = data;
  capacity_ = capacity;
}

void Bytes::shrink(std::size_t most) {
  if (size_ != 0 || capacity_ <= most) return;
  ::operator delete(std::exchange(data_, nullptr));
  capacity_ = 0;
}

Buffer::Buffer(std::size_t size) {
  if (size == 0) return;
  data_ = static_cast<std::byte*>(::operator new(size));
  size_ = size;
  release_ = [](void*, std::byte* data, std::size_t) { ::operator delete(data); };
}

Buffer Buffer::copy_of(std::span<const std::byte> memory) {
  Buffer copy(memory.size());
  if (!memory.empty()) std::memcpy(copy.data(), memory.data(), memory.size());
  return copy;
}

}  // namespace weir::rpc
