// Copies with an order that a reader of the memory may rely on.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weir::rnic {

inline void copy_gather(std::byte* to, std::span<const iovec> from) {
  for (const iovec& piece : from) {
    std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
}

inline void copy_scatter(const std::byte* from, std::span<const iovec> to) {
  for (const iovec& piece : to) {
    std::memcpy(piece.iov_base, from, piece.iov_len);
    from += piece.iov_len;
  }
}

// As copy_gather, but the last byte becomes visible after all others. Programs that poll memory for an RDMA
// WRITE (ib_write_lat, NCCL, many message queues) look at the last byte, and memcpy may store the tail first.
// A last word of eight bytes that is aligned becomes visible as a whole, as on devices: versions and locks
// are such words.
inline void copy_in_order(std::byte* to, std::span<const iovec> from) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto* source = static_cast<const std::byte*>(from[i].iov_base);
    const std::size_t length = from[i].iov_len;
    if (i + 1 < from.size() || length == 0) {
      std::memcpy(to, source, length);
      to += length;
      continue;
    }
    if (length >= sizeof(std::uint64_t) &&
        reinterpret_cast<std::uintptr_t>(to + length) % sizeof(std::uint64_t) == 0) {
      const std::size_t before = length - sizeof(std::uint64_t);
      std::uint64_t last;
      std::memcpy(&last, source + before, sizeof last);
      std::memcpy(to, source, before);
      std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to + before)).store(last, std::memory_order_release);
      continue;
    }
    std::memcpy(to, source, length - 1);
    std::atomic_ref<std::byte>(to[length - 1]).store(source[length - 1], std::memory_order_release);
  }
}

}  // namespace weir::rnic
