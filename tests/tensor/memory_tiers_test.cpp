#include "tensor/memory/memory_tiers.hpp"

#include <gtest/gtest.h>

#include "tensor/memory/shared_memory.hpp"

namespace weir::tensor {
namespace {

std::span<const std::byte> memory(std::uintptr_t begin, std::size_t bytes) {
  return {reinterpret_cast<const std::byte*>(begin), bytes};  // never read
}

TEST(MemoryTiers, counts_what_lies_in_shared_mappings) {
  const SharedMappings mappings(
      "1000-2000 r--p 00000000 08:01 1 /bin/a\n"
      "2000-3000 rw-s 00000000 00:01 2 /memfd:a\n"
      "3000-5000 rw-s 00001000 00:01 2 /memfd:a\n"
      "7000-8000 rw-p 00000000 00:00 0\n"
      "nonsense\n"
      "9000-a000 rw-s 00000000 00:01 3 /memfd:b");
  struct Row {
    std::uintptr_t begin;
    std::size_t bytes;
    std::uint64_t shared;
  };
  for (const Row& each : {Row{0x1000, 0x1000, 0}, Row{0x2000, 0x3000, 0x3000}, Row{0x1f00, 0x200, 0x100},
                          Row{0x4f00, 0x200, 0x100}, Row{0x7000, 0x1000, 0}, Row{0x1000, 0x9000, 0x4000},
                          Row{0x2000, 0, 0}, Row{0xa000, 16, 0}})
    EXPECT_EQ(mappings.bytes_of(memory(each.begin, each.bytes)), each.shared) << std::hex << each.begin;
}

TEST(MemoryTiers, knows_this_process) {
  const auto shared = SharedMemory::map(10'000);
  ASSERT_TRUE(shared);
  const std::vector<std::byte> ours(10'000);
  const SharedMappings mappings = SharedMappings::now();
  EXPECT_EQ(mappings.bytes_of(shared->bytes()), 10'000U);
  EXPECT_EQ(mappings.bytes_of(ours), 0U);
}

}  // namespace
}  // namespace weir::tensor
