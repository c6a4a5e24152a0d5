#include "tensor/arrays/sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace weir::tensor {
namespace {

// DLPack's codes.
constexpr std::uint8_t signed_integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4;

template <class T>
struct Plain {
  using Stored = T;
  static Stored sum(Stored one, Stored other) { return static_cast<Stored>(one + other); }
};

struct BFloat16 {
  using Stored = std::uint16_t;
  static float wide(Stored half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }
  static Stored narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return static_cast<Stored>(bits >> 16 | 0x40);
    return static_cast<Stored>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  static Stored sum(Stored one, Stored other) { return narrow(wide(one) + wide(other)); }
};

struct Float16 {
  using Stored = std::uint16_t;
  static float wide(Stored half) {
    const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
    const std::uint32_t exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
    if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    const float small = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -small : small;
  }
  static Stored narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<Stored>(bits >> 16 & 0x8000);
    const float size = std::fabs(value);
    if (std::isnan(value)) return static_cast<Stored>(sign | 0x7e00);
    if (size >= 65520.F) return static_cast<Stored>(sign | 0x7c00);  // rounds to infinity
    if (size < 0x1p-14F)
      return static_cast<Stored>(sign | static_cast<Stored>(std::nearbyint(size * 0x1p24F)));
    const std::uint32_t positive = bits & 0x7fffffffU;
    const std::uint32_t rounded = positive + 0xfff + (positive >> 13 & 1);
    return static_cast<Stored>(sign | ((rounded >> 13) - (112U << 10)));
  }
  static Stored sum(Stored one, Stored other) { return narrow(wide(one) + wide(other)); }
};

// In blocks, so that elements at any alignment are added many at once.
template <class Kind>
void add(std::span<std::byte> to, std::span<const std::byte> from) {
  using Stored = typename Kind::Stored;
  constexpr std::size_t block = 512;
  Stored sums[block], addends[block];
  for (std::size_t at = 0; at < to.size(); at += sizeof sums) {
    const std::size_t bytes = std::min(sizeof sums, to.size() - at);
    std::memcpy(sums, to.data() + at, bytes);
    std::memcpy(addends, from.data() + at, bytes);
    for (std::size_t i = 0; i < bytes / sizeof(Stored); ++i) sums[i] = Kind::sum(sums[i], addends[i]);
    std::memcpy(to.data() + at, sums, bytes);
  }
}

struct AddRow {
  std::uint8_t code, bits;
  Adder adder;
};
// Integers wrap, so that those without a sign serve for both.
constexpr AddRow add_rows[] = {
    {floating, 32, add<Plain<float>>},
    {floating, 64, add<Plain<double>>},
    {floating, 16, add<Float16>},
    {bfloat, 16, add<BFloat16>},
    {signed_integer, 8, add<Plain<std::uint8_t>>},
    {signed_integer, 16, add<Plain<std::uint16_t>>},
    {signed_integer, 32, add<Plain<std::uint32_t>>},
    {signed_integer, 64, add<Plain<std::uint64_t>>},
    {unsigned_integer, 8, add<Plain<std::uint8_t>>},
    {unsigned_integer, 16, add<Plain<std::uint16_t>>},
    {unsigned_integer, 32, add<Plain<std::uint32_t>>},
    {unsigned_integer, 64, add<Plain<std::uint64_t>>},
};

}  // namespace

Adder adder_of(const DType& dtype) {
  const AddRow* row = std::ranges::find_if(
      add_rows, [&](const AddRow& each) { return each.code == dtype.code && each.bits == dtype.bits; });
  return row == std::end(add_rows) || dtype.lanes != 1 ? nullptr : row->adder;
}

}  // namespace weir::tensor
