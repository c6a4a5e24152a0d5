// How much of a receive buffer to announce: as little as the traffic needs, so that the buffers of many
// connections stay in the cache together.
//
// The peer fills a buffer from its start to its end once for each announcement, so the announced bytes are
// what passes through the cache. The size follows how the last buffer was filled. Few writes mean large ones,
// and a small buffer would make the peer wait for room in the middle of them; many writes fit into a smaller
// buffer. Invariant: least <= now() <= most. Pure; one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::rdma {

class ReceiveSize {
 public:
  static constexpr std::uint32_t least_bytes = 64 << 10;  // or the most, if that is less
  static constexpr std::uint32_t step = 4;
  static constexpr std::uint64_t few_writes = 4;
  static constexpr std::uint64_t many_writes = 2 * step * few_writes;  // a quarter of these are not few

  explicit ReceiveSize(std::uint32_t most_bytes)
      : most_(most_bytes), least_(std::min(least_bytes, most_bytes)), now_(least_) {}

  std::uint32_t now() const { return now_; }

  // The buffer of now() bytes is full, filled by `writes` writes. Returns the size of the next one.
  std::uint32_t after(std::uint64_t writes) {
    if (writes <= few_writes) now_ = now_ > most_ / step ? most_ : now_ * step;
    if (writes > many_writes) now_ = std::max(now_ / step, least_);
    return now_;
  }

 private:
  std::uint32_t most_;
  std::uint32_t least_;
  std::uint32_t now_;
};

}  // namespace weir::rdma
