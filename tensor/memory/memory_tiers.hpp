// What kind of memory versions lie in, as the software NIC of another process sees it. It maps shared memory
// (from weir_tensor_empty, packed trees, or a program under `weir run --share-memory`), and the reader copies
// from there; private memory is copied by the kernel. A real NIC reads both alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::tensor {

struct MemoryTiers {
  std::uint64_t private_bytes = 0, shared_bytes = 0;
};

class SharedMappings {
 public:
  // The mappings of this process now; empty without /proc.
  static SharedMappings now();
  // `maps` holds lines of /proc/self/maps, in order of address. Pure.
  explicit SharedMappings(std::string_view maps);

  // How many of those bytes lie in shared mappings.
  std::uint64_t bytes_of(std::span<const std::byte> memory) const;

 private:
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges_;  // begin, end; in order
};

}  // namespace weir::tensor
