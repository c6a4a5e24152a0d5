// Host memory that arrays of GPUs pass through, because the software NIC reaches no GPU's memory: the third
// of the three paths, "staged".
//
// It is shared memory, which the software NIC of another process maps, and pinned, so that the GPU copies to
// it and from it at full speed. Making such memory takes longer than a copy through it, so it is used again:
// at most `keep_bytes` wait for that, and at most `pinned_bytes` are pinned; what is beyond stays ordinary
// shared memory, which is slower and nothing else. Ownership: what take() gave goes back by give_back(),
// once. Threading: any thread.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "tensor/error.hpp"
#include "tensor/gpu.hpp"
#include "tensor/shared_memory.hpp"

namespace weir::tensor {

class GpuStaging {
 public:
  struct Limits {
    std::size_t keep_bytes = std::size_t{512} << 20;
    std::size_t pinned_bytes = std::size_t{2} << 30;
  };
  explicit GpuStaging(Limits limits) : limits_(limits) {}
  // What is still lent goes, too.
  ~GpuStaging();
  GpuStaging(const GpuStaging&) = delete;
  GpuStaging& operator=(const GpuStaging&) = delete;
  // The process's own; never destroyed.
  static GpuStaging& of_process();

  // That much, on pages of its own; what is in it is unspecified. too_much.
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
  // Takes it out of the counts; the caller holds the lock, and ends the block without it.
  Block oldest_spare();
  static void end(std::vector<Block> blocks);

  const Limits limits_;
  mutable std::mutex mutex_;
  std::map<std::byte*, Block> lent_;
  std::vector<Block> spare_;  // the longest unused first
  std::size_t spare_bytes_ = 0, pinned_bytes_ = 0;
};

}  // namespace weir::tensor
