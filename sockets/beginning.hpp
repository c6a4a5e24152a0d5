// A connection's first bytes, as proof that two ends with the same addresses belong to one connection. The
// digests are keyed; between hosts the key is secret (seal.hpp). Pure.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>

#include "hash/siphash.hpp"

namespace weir::sockets {

// Digests of one direction's first 16 and 64 bytes. 0: not that many bytes yet.
struct Beginning {
  std::uint64_t after_16 = 0, after_64 = 0;
  bool operator==(const Beginning&) const = default;
};

// The first bytes of one direction. One thread at a time calls note(), at consecutive positions.
class FirstBytes {
 public:
  static constexpr std::size_t most = 64;

  // The first `bytes` bytes of `pieces` are at `position` in the stream.
  void note(std::uint64_t position, std::span<const iovec> pieces, std::size_t bytes);
  // The digests of a direction that has carried `bytes` so far.
  Beginning beginning(hash::SipKey key, std::uint64_t bytes) const;

 private:
  std::array<char, most> first_{};
};

enum class Likeness { unknown, same, different };
// Whether one end has sent what the other has received.
Likeness compare(const Beginning& sent, const Beginning& received);

struct Conversation {
  Beginning sent, received;
};
// Compares both directions: `same` if at least one is known to be the same and none differs.
Likeness mirror(const Conversation& mine, const Conversation& peers);

}  // namespace weir::sockets
