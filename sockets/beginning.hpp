// What went by in the beginning of a connection, as a proof that two ends with the same addresses are of one.
// Digests are made under a key: between hosts a secret one (seal.hpp). Pure.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>

#include "hash/siphash.hpp"

namespace weir::sockets {

// Digests of one direction's first bytes. 0: not that far yet.
struct Beginning {
  std::uint64_t after_16 = 0, after_64 = 0;
  bool operator==(const Beginning&) const = default;
};

// The first bytes of one direction. note() by one thread at a time, at positions that follow each other.
class FirstBytes {
 public:
  static constexpr std::size_t most = 64;

  // `bytes` of `pieces` go by from `position` on.
  void note(std::uint64_t position, std::span<const iovec> pieces, std::size_t bytes);
  // Of a direction of which `bytes` went by so far.
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
// Of both directions: at least one is known to be the same, and none is different.
Likeness mirror(const Conversation& mine, const Conversation& peers);

}  // namespace weir::sockets
