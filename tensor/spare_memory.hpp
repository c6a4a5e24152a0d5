// Memory for fetches without a destination, reused because getting new pages from the kernel costs more than
// filling them. It is private memory: a NIC registers that faster than shared memory, for which it has to
// find the file.
//
// Ownership: a block returns when its last owner lets go, in any thread, even after the SpareMemory itself
// was dropped. At most `keep_bytes` are kept for reuse. Threading: any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tensor/error.hpp"

namespace weir::tensor {

class SpareMemory : public std::enable_shared_from_this<SpareMemory> {
 public:
  explicit SpareMemory(std::size_t keep_bytes) : keep_bytes_(keep_bytes) {}

  struct Taken {
    std::span<std::byte> bytes;
    std::shared_ptr<void> owner;
  };
  // A block of that size, aligned to 64 bytes and not zeroed. Errc::too_much.
  Result<Taken> take(std::size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    std::size_t bytes = 0;
  };
  void give_back(Block block);

  const std::size_t keep_bytes_;
  std::mutex mutex_;
  std::vector<Block> spare_;
  std::size_t spare_bytes_ = 0;
};

}  // namespace weir::tensor
