#include "sockets/calls/pieces.hpp"

#include <algorithm>
#include <cstring>

namespace weir::sockets {
namespace {

// Calls `copy` with each stretch of `pieces` after `skip` and the number of bytes before that stretch.
template <class Copy>
std::size_t for_stretches(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes, Copy copy) {
  std::size_t done = 0;
  for (const iovec& piece : pieces) {
    if (done == bytes) break;
    if (skip >= piece.iov_len) {
      skip -= piece.iov_len;
      continue;
    }
    const std::size_t here = std::min(piece.iov_len - skip, bytes - done);
    copy(static_cast<std::byte*>(piece.iov_base) + skip, done, here);
    done += here;
    skip = 0;
  }
  return done;
}

}  // namespace

std::size_t total_bytes(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

std::size_t copy_into(std::span<const iovec> pieces, std::size_t skip, const std::byte* from,
                      std::size_t bytes) {
  return for_stretches(pieces, skip, bytes, [&](std::byte* at, std::size_t done, std::size_t here) {
    std::memcpy(at, from + done, here);
  });
}

std::size_t copy_out_of(std::span<const iovec> pieces, std::size_t skip, std::byte* to, std::size_t bytes) {
  return for_stretches(pieces, skip, bytes, [&](const std::byte* at, std::size_t done, std::size_t here) {
    std::memcpy(to + done, at, here);
  });
}

Part::Part(std::span<const iovec> pieces, std::size_t skip, std::uint64_t bytes) {
  for (const iovec& piece : pieces) {
    if (bytes == 0 || count_ == part_.size()) break;
    if (skip >= piece.iov_len) {
      skip -= piece.iov_len;
      continue;
    }
    const std::size_t here = std::min<std::uint64_t>(piece.iov_len - skip, bytes);
    part_[count_++] = {static_cast<std::byte*>(piece.iov_base) + skip, here};
    bytes -= here;
    skip = 0;
  }
  message_.msg_iov = part_.data();
  message_.msg_iovlen = count_;
}

}  // namespace weir::sockets
