// A program's list of buffers, as readv() and writev() have it. Pure.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::sockets {

std::size_t total_bytes(std::span<const iovec> pieces);

// `bytes` into or out of `pieces`, behind the first `skip`. How many there was room for, or were there.
std::size_t copy_into(std::span<const iovec> pieces, std::size_t skip, const std::byte* from,
                      std::size_t bytes);
std::size_t copy_out_of(std::span<const iovec> pieces, std::size_t skip, std::byte* to, std::size_t bytes);

// The part of `pieces` behind `skip`, at most `bytes` of it, as one call of the kernel gets it.
class Part {
 public:
  static constexpr std::size_t most_pieces = 64;

  Part(std::span<const iovec> pieces, std::size_t skip, std::uint64_t bytes);
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  msghdr& message() { return message_; }
  std::span<const iovec> pieces() const { return std::span(part_).first(count_); }

 private:
  std::array<iovec, most_pieces> part_;
  std::size_t count_ = 0;
  msghdr message_{};
};

}  // namespace weir::sockets
