// Carry-less multiplication folds a message without changing its remainder: 128 bits that are n bits ahead of
// others are multiplied by x^n mod P and added to them (Gopal and others, "Fast CRC computation for generic
// polynomials using PCLMULQDQ", Intel 2009). Barrett's method reduces the last 128 bits.
#include "wire/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace weir::wire {
namespace {

// ---- tables: eight bytes a step

using SliceTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr SliceTables slice_tables = [] {
  SliceTables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    tables[0][i] = crc;
  }
  for (std::uint32_t i = 0; i < 256; ++i)
    for (std::size_t t = 1; t < tables.size(); ++t)
      tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
  return tables;
}();

std::uint32_t by_tables(std::uint32_t crc, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  if constexpr (std::endian::native == std::endian::little) {
    for (; left >= 8; left -= 8, at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, sizeof word);
      word ^= crc;
      crc = 0;
      for (std::size_t i = 0; i < 8; ++i) crc ^= slice_tables[7 - i][word >> (8 * i) & 0xff];
    }
  }
  for (; left > 0; --left, ++at)
    crc = crc >> 8 ^ slice_tables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xff];
  return crc;
}

#ifdef __x86_64__

// x^n mod P, reflected and shifted for a carry-less product of reflected numbers.
constexpr std::uint64_t power_of_x(unsigned n) {
  std::uint32_t remainder = 1;
  for (; n > 0; --n) remainder = remainder << 1 ^ (remainder >> 31 != 0 ? 0x04c11db7u : 0);
  std::uint64_t reflected = 0;
  for (unsigned bit = 0; bit < 32; ++bit)
    if (remainder >> bit & 1) reflected |= 1ull << (31 - bit);
  return reflected << 1;
}
static_assert(power_of_x(128 + 32) == 0x1751997d0 && power_of_x(128 - 32) == 0x0ccaa009e);

// Factors that fold across `bits`, for the lower and the upper 64 of 128 bits.
struct Fold {
  std::uint64_t low, high;
};
constexpr Fold across(unsigned bits) { return {power_of_x(bits + 32), power_of_x(bits - 32)}; }
constexpr Fold across_128 = across(128), across_512 = across(512), across_2048 = across(2048);
constexpr std::uint64_t polynomial = 0x1db710641, barrett = 0x1f7011641;

#define WEIR_PCLMUL __attribute__((target("pclmul,sse4.1")))
#define WEIR_VPCLMUL __attribute__((target("pclmul,sse4.1,avx512f,avx512vl,avx512dq,vpclmulqdq")))

WEIR_PCLMUL inline __m128i pair(const Fold& by) {
  return _mm_set_epi64x(static_cast<std::int64_t>(by.high), static_cast<std::int64_t>(by.low));
}
WEIR_PCLMUL inline __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
WEIR_PCLMUL inline __m128i folded(__m128i from, __m128i by, __m128i onto) {
  return _mm_xor_si128(
      _mm_xor_si128(_mm_clmulepi64_si128(from, by, 0x00), _mm_clmulepi64_si128(from, by, 0x11)), onto);
}

// Reduces 128 bits to their remainder.
WEIR_PCLMUL inline std::uint32_t reduced(__m128i x) {
  const __m128i every_other = _mm_setr_epi32(-1, 0, -1, 0);
  const __m128i by = _mm_set_epi64x(static_cast<std::int64_t>(power_of_x(128 - 32)), 0);
  x = _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x10), _mm_srli_si128(x, 8));
  const __m128i by_64 = _mm_set_epi64x(0, static_cast<std::int64_t>(power_of_x(64)));
  x = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(x, every_other), by_64, 0x00), _mm_srli_si128(x, 4));
  const __m128i p = _mm_set_epi64x(static_cast<std::int64_t>(barrett), static_cast<std::int64_t>(polynomial));
  __m128i t = _mm_clmulepi64_si128(_mm_and_si128(x, every_other), p, 0x10);
  t = _mm_clmulepi64_si128(_mm_and_si128(t, every_other), p, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(x, t), 1));
}

// Folds the rest, 16 bytes a step; the last few bytes go by tables.
WEIR_PCLMUL inline std::uint32_t fold_rest(__m128i x, const std::byte* at, std::size_t left) {
  const __m128i by = pair(across_128);
  for (; left >= 16; left -= 16, at += 16) x = folded(x, by, load(at));
  return by_tables(reduced(x), {at, left});
}

WEIR_PCLMUL std::uint32_t by_pclmul(std::uint32_t crc, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  if (left < 16) return by_tables(crc, bytes);
  const __m128i start = _mm_cvtsi32_si128(static_cast<int>(crc));
  __m128i x = _mm_xor_si128(load(at), start);
  if (left < 64) return fold_rest(x, at + 16, left - 16);
  __m128i y = load(at + 16), z = load(at + 32), w = load(at + 48);
  const __m128i by = pair(across_512);
  for (at += 64, left -= 64; left >= 64; at += 64, left -= 64) {
    x = folded(x, by, load(at));
    y = folded(y, by, load(at + 16));
    z = folded(z, by, load(at + 32));
    w = folded(w, by, load(at + 48));
  }
  const __m128i next = pair(across_128);
  x = folded(folded(folded(x, next, y), next, z), next, w);
  return fold_rest(x, at, left);
}

WEIR_VPCLMUL inline __m512i folded(__m512i from, __m512i by, __m512i onto) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(from, by, 0x00),
                                   _mm512_clmulepi64_epi128(from, by, 0x11), onto, 0x96);
}
WEIR_VPCLMUL inline __m512i load_512(const std::byte* at) { return _mm512_loadu_si512(at); }
WEIR_VPCLMUL inline __m512i quad(const Fold& by) { return _mm512_broadcast_i32x4(pair(by)); }

WEIR_VPCLMUL std::uint32_t by_vpclmul(std::uint32_t crc, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  if (left < 128) return by_pclmul(crc, bytes);
  const __m512i by_512 = quad(across_512);
  __m512i x =
      _mm512_xor_si512(load_512(at), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  at += 64;
  left -= 64;
  if (left >= 448) {
    __m512i y = load_512(at), z = load_512(at + 64), w = load_512(at + 128);
    const __m512i by = quad(across_2048);
    for (at += 192, left -= 192; left >= 256; at += 256, left -= 256) {
      x = folded(x, by, load_512(at));
      y = folded(y, by, load_512(at + 64));
      z = folded(z, by, load_512(at + 128));
      w = folded(w, by, load_512(at + 192));
    }
    x = folded(folded(folded(x, by_512, y), by_512, z), by_512, w);
  }
  for (; left >= 64; at += 64, left -= 64) x = folded(x, by_512, load_512(at));
  const __m128i next = pair(across_128);
  __m128i rest = _mm512_castsi512_si128(x);
  rest = folded(rest, next, _mm512_extracti64x2_epi64(x, 1));
  rest = folded(rest, next, _mm512_extracti64x2_epi64(x, 2));
  rest = folded(rest, next, _mm512_extracti64x2_epi64(x, 3));
  return fold_rest(rest, at, left);
}

bool has_vpclmul() {
  return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}
bool has_pclmul() { return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"); }

constexpr Crc32Way ways[] = {{"vpclmulqdq", by_vpclmul}, {"pclmulqdq", by_pclmul}, {"tables", by_tables}};

std::size_t fastest_way() { return has_vpclmul() ? 0 : has_pclmul() ? 1 : 2; }

#else

constexpr Crc32Way ways[] = {{"tables", by_tables}};

std::size_t fastest_way() { return 0; }

#endif

}  // namespace

std::span<const Crc32Way> crc32_ways() {
  static const std::size_t first = fastest_way();
  return std::span(ways).subspan(first);
}

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) {
  static const auto add = crc32_ways().front().add;
  return add(crc, bytes);
}

}  // namespace weir::wire
