// SipHash: a pseudo-random function of bytes under a secret key of 128 bits. J.-P. Aumasson, D. J. Bernstein,
// "SipHash: a fast short-input PRF", 2012.
//
// SipHash-1-3 (one round a word, three at the end) is for tables, as Rust's and Python's; SipHash-2-4, the
// authors' proposal, for authentication.
//
// Threading: stateless.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::hash {

struct SipKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

template <int compressions, int finalizations>
class SipRounds {
 public:
  explicit SipRounds(SipKey key)
      : v0_(key.first ^ 0x736f6d6570736575u),
        v1_(key.second ^ 0x646f72616e646f6du),
        v2_(key.first ^ 0x6c7967656e657261u),
        v3_(key.second ^ 0x7465646279746573u) {}

  void add(std::uint64_t word) {
    v3_ ^= word;
    for (int i = 0; i < compressions; ++i) round();
    v0_ ^= word;
  }
  std::uint64_t finish() {
    v2_ ^= 0xff;
    for (int i = 0; i < finalizations; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};
using SipState = SipRounds<1, 3>;
using SipMacState = SipRounds<2, 4>;

namespace detail {
template <class Word>
std::uint64_t load(const char* at) {
  static_assert(std::endian::native == std::endian::little, "SipHash reads little-endian words");
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}
// The last `size` < 8 bytes as a little-endian word, without a loop: two loads overlap where they must.
inline std::uint64_t load_tail(const char* at, std::size_t size) {
  if (size >= 4) return load<std::uint32_t>(at) | load<std::uint32_t>(at + size - 4) << (size - 4) * 8;
  if (size == 0) return 0;
  return load<std::uint8_t>(at) | load<std::uint8_t>(at + size / 2) << size / 2 * 8 |
         load<std::uint8_t>(at + size - 1) << (size - 1) * 8;
}
}  // namespace detail

// Of what `state` has taken, and then these bytes.
template <class State>
std::uint64_t finish_with(State state, std::string_view bytes) {
  const char* at = bytes.data();
  for (const char* const whole = at + (bytes.size() & ~std::size_t{7}); at != whole; at += 8)
    state.add(detail::load<std::uint64_t>(at));
  state.add(detail::load_tail(at, bytes.size() & 7) | std::uint64_t{bytes.size()} << 56);
  return state.finish();
}

inline std::uint64_t siphash(SipKey key, std::string_view bytes) { return finish_with(SipState(key), bytes); }

// The same result as for the word's eight bytes.
inline std::uint64_t siphash(SipKey key, std::uint64_t word) {
  SipState state(key);
  state.add(word);
  state.add(std::uint64_t{8} << 56);
  return state.finish();
}

}  // namespace weir::hash
