// Memory for what is fetched without a destination: used again, because taking new pages from the kernel
// costs more than filling them. It is private memory: a NIC registers that faster than shared memory, whose
// file it has to find.
//
// Ownership: what take() gives comes back when its last owner lets go, in any thread, also after the
// SpareMemory is gone. At most `keep_bytes` wait to be used again. Threading: any thread.
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
  // That much, aligned to 64 bytes; what is in it is unspecified. too_much.
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
