// Host memory through which GPU arrays pass, because the software NIC cannot reach a GPU's memory. Of the
// three paths this is the one called "staged".
//
// It is shared memory, which the software NIC of another process maps, and it is pinned, so that the GPU
// copies to and from it at full speed. Allocating and pinning takes longer than a copy, so blocks are reused:
// at most `keep_bytes` are kept for reuse, and at most `pinned_bytes` are pinned. Blocks beyond that are
// ordinary shared memory, which is only slower. Ownership: every block from take() is returned with
// give_back() exactly once. Threading: any thread.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "tensor/error.hpp"
#include "tensor/memory/gpu.hpp"
#include "tensor/memory/shared_memory.hpp"

namespace weir::tensor {

class GpuStaging {
 public:
  struct Limits {
    std::size_t keep_bytes = std::size_t{512} << 20;
    std::size_t pinned_bytes = std::size_t{2} << 30;
  };
  explicit GpuStaging(Limits limits) : limits_(limits) {}
  // Frees blocks that were not given back, too.
  ~GpuStaging();
  GpuStaging(const GpuStaging&) = delete;
  GpuStaging& operator=(const GpuStaging&) = delete;
  // The process's own instance; never destroyed.
  static GpuStaging& of_process();

  // A block of that size, on pages of its own and not zeroed. Errc::too_much.
  Result<std::byte*> take(Gpu& gpu, std::size_t bytes);
  void give_back(std::byte* memory);

  std::size_t pinned_bytes() const;
  std::size_t spare_bytes() const;

 private:
  struct Block {
    SharedMemory memory;
    Gpu* pinned_by = nullptr;  // null: not pinned
  };
  bool may_pin(std::size_t bytes);
  // Removes the oldest spare block from the counts. The caller holds the lock, and unpins the block after
  // releasing it.
  Block oldest_spare();
  static void end(std::vector<Block> blocks);

  const Limits limits_;
  mutable std::mutex mutex_;
  std::map<std::byte*, Block> lent_;
  std::vector<Block> spare_;  // least recently used first
  std::size_t spare_bytes_ = 0, pinned_bytes_ = 0;
};

}  // namespace weir::tensor
