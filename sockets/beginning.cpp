#include "sockets/beginning.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace weir::sockets {

void FirstBytes::note(std::uint64_t position, std::span<const iovec> pieces, std::size_t bytes) {
  for (const iovec& piece : pieces) {
    if (bytes == 0 || position >= most) return;
    const std::size_t here = std::min(piece.iov_len, bytes);
    std::memcpy(first_.data() + position, piece.iov_base, std::min<std::size_t>(here, most - position));
    position += here;
    bytes -= here;
  }
}

Beginning FirstBytes::beginning(hash::SipKey key, std::uint64_t bytes) const {
  constexpr std::size_t some = 16;
  const auto digest = [&](std::size_t size) -> std::uint64_t {
    return bytes >= size ? hash::siphash(key, std::string_view(first_.data(), size)) | 1 : 0;
  };
  return {.after_16 = digest(some), .after_64 = digest(most)};
}

Likeness compare(const Beginning& sent, const Beginning& received) {
  if (sent.after_16 == 0 || received.after_16 == 0) return Likeness::unknown;
  if (sent.after_16 != received.after_16) return Likeness::different;
  return sent.after_64 != 0 && received.after_64 != 0 && sent.after_64 != received.after_64
             ? Likeness::different
             : Likeness::same;
}

Likeness mirror(const Conversation& mine, const Conversation& peers) {
  const auto there = compare(mine.sent, peers.received), back = compare(peers.sent, mine.received);
  if (there == Likeness::different || back == Likeness::different) return Likeness::different;
  return there == Likeness::same || back == Likeness::same ? Likeness::same : Likeness::unknown;
}

}  // namespace weir::sockets
