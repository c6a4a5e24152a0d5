// A copy's order, as a program sees it that watches the memory.
#include "rnic/memory/copy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace weir::rnic {
namespace {

TEST(CopyInOrder, copies_every_length_to_every_alignment) {
  std::array<std::byte, 64> from{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
  for (std::size_t at = 0; at < 8; ++at)
    for (std::size_t length = 0; length <= 40; ++length) {
      SCOPED_TRACE(testing::Message() << at << " " << length);
      alignas(8) std::array<std::byte, 64> to{};
      const std::array<iovec, 2> pieces{iovec{from.data(), length / 3},
                                        iovec{from.data() + length / 3, length - length / 3}};
      copy_in_order(to.data() + at, pieces);
      for (std::size_t i = 0; i < to.size(); ++i)
        ASSERT_EQ(to[i], i < at || i >= at + length ? std::byte{0} : from[i - at]);
    }
}

// On a NIC an aligned word of eight bytes is written whole; programs keep versions and locks in such words.
TEST(CopyInOrder, a_last_aligned_word_is_never_seen_half_written) {
  alignas(8) std::uint64_t word = 0;
  const std::atomic_ref<std::uint64_t> watched(word);
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    for (std::uint32_t i = 0; i < 5'000'000; ++i) {
      std::uint64_t value = i % 2 == 0 ? ~0ull : 0;
      const iovec piece{&value, sizeof value};
      copy_in_order(reinterpret_cast<std::byte*>(&word), {&piece, 1});
    }
    ended = true;
  });
  std::uint64_t torn = 0;
  while (!ended) {
    const std::uint64_t seen = watched.load(std::memory_order_acquire);
    if (seen != 0 && seen != ~0ull) torn = seen;
  }
  writer.join();
  EXPECT_EQ(torn, 0u);
}

}  // namespace
}  // namespace weir::rnic
