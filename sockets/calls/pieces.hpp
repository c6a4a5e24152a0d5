// A program's list of buffers, as readv() and writev() take it. Pure.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::sockets {

std::size_t total_bytes(std::span<const iovec> pieces);

// Copy `bytes` into or out of `pieces`, after the first `skip`. Return how many bytes fit, or were there.
std::size_t copy_into(std::span<const iovec> pieces, std::size_t skip, const std::byte* from,
                      std::size_t bytes);
std::size_t copy_out_of(std::span<const iovec> pieces, std::size_t skip, std::byte* to, std::size_t bytes);

// The part of `pieces` after `skip`, at most `bytes` of it, in the form that a kernel call takes.
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
