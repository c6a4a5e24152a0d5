// Memory for what is fetched without a destination: used again, because taking new pages from the kernel
// costs more than filling them.
//
// Ownership: what take() gives comes back when its last owner lets go, in any thread, also after the
// SpareMemory is gone. At most `keep_bytes` wait to be used again. Threading: any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "tensor/shared_memory.hpp"

namespace weir::tensor {

class SpareMemory : public std::enable_shared_from_this<SpareMemory> {
 public:
  explicit SpareMemory(std::size_t keep_bytes) : keep_bytes_(keep_bytes) {}

  struct Taken {
    std::span<std::byte> bytes;
    std::shared_ptr<void> owner;
  };
  // At least that much; what is in it is unspecified. too_much.
  Result<Taken> take(std::size_t bytes);

 private:
  void give_back(SharedMemory memory);

  const std::size_t keep_bytes_;
  std::mutex mutex_;
  std::vector<SharedMemory> spare_;
  std::size_t spare_bytes_ = 0;
};

}  // namespace weir::tensor
