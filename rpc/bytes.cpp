#include "rpc/bytes.hpp"

#include <algorithm>

#include "rpc/spare_blocks.hpp"

namespace weir::rpc {

void Bytes::reserve(std::size_t capacity) {
  if (capacity <= capacity_) return;
  capacity = std::max({capacity, capacity_ * 2, std::size_t{256}});
  const spare_blocks::Block block =
      capacity >= spare_blocks::smallest
          ? spare_blocks::take(capacity)
          : spare_blocks::Block{static_cast<std::byte*>(::operator new(capacity)), capacity};
  if (size_ > 0) std::memcpy(block.data, data_, size_);
  release();
  data_ = block.data;
  capacity_ = block.bytes;
}

void Bytes::release() {
  spare_blocks::give_back({std::exchange(data_, nullptr), std::exchange(capacity_, 0)});
}

void Bytes::shrink(std::size_t most) {
  if (size_ != 0 || capacity_ <= most) return;
  release();
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
