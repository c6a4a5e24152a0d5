#include "rpc/wire/bytes.hpp"

#include <algorithm>

#include "rpc/wire/block_cache.hpp"

namespace weir::rpc {

void Bytes::reserve(std::size_t capacity) {
  if (capacity <= capacity_) return;
  capacity = std::max({capacity, capacity_ * 2, std::size_t{256}});
  const block_cache::Block block =
      capacity >= block_cache::smallest
          ? block_cache::take(capacity)
          : block_cache::Block{static_cast<std::byte*>(::operator new(capacity)), capacity};
  if (size_ > 0) std::memcpy(block.data, data_, size_);
  if (data_ != nullptr) release();
  data_ = block.data;
  capacity_ = block.bytes;
}

void Bytes::release() {
  std::byte* const data = std::exchange(data_, nullptr);
  const std::size_t capacity = std::exchange(capacity_, 0);
  if (const auto release = std::exchange(release_, nullptr); release != nullptr)
    release(owner_, data, capacity);
  else
    block_cache::give_back({data, capacity});
}

Buffer Bytes::take() {
  Buffer taken({data_, size_}, release_, owner_);
  if (data_ != nullptr && release_ == nullptr) {
    // Instead of an owner we keep the capacity, which is what counts for the block's next user.
    taken.owner_ = reinterpret_cast<void*>(capacity_);
    taken.release_ = [](void* capacity, std::byte* data, std::size_t) {
      block_cache::give_back({data, reinterpret_cast<std::size_t>(capacity)});
    };
  }
  data_ = nullptr;
  size_ = capacity_ = 0;
  release_ = nullptr;
  return taken;
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
