// Memory for fetches without a destination, reused because getting new pages from the kernel costs more than
// filling them. It is private memory: a NIC registers that faster than shared memory, for which it has to
// find the file.
//
// Nothing here holds what the process had in its heap before: new memory is zeroed, because only the other
// end of an RDMA connection knows which bytes it wrote. What take() returns may hold what an earlier holder
// received, so it is for a reader whose blocks all come from one hub. A hub shows what a peer pushed to other
// peers, and uses take_zeroed().
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
  // A block of that size, aligned to 64 bytes: zeros, or what an earlier holder left. Errc::too_much.
  Result<Taken> take(std::size_t bytes);
  // The same, all zeros. A large block has no pages until they are written.
  Result<Taken> take_zeroed(std::size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    std::size_t bytes = 0;
  };
  Block reuse(std::size_t bytes);
  static Result<Block> make(std::size_t bytes);
  static void zero(const Block& block);
  Taken lend(Block block, std::size_t bytes);
  void give_back(Block block);

  const std::size_t keep_bytes_;
  std::mutex mutex_;
  std::vector<Block> spare_;
  std::size_t spare_bytes_ = 0;
};

}  // namespace weir::tensor
