// Sums of arrays: each type of element, any alignment, and rounding.
#include "tensor/arrays/sum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace weir::tensor {
namespace {

template <class T>
std::vector<T> sum(const DType& dtype, std::vector<T> to, const std::vector<T>& from) {
  adder_of(dtype)(std::as_writable_bytes(std::span(to)), std::as_bytes(std::span(from)));
  return to;
}

TEST(Sum, floats_and_doubles_are_added_in_every_place) {
  for (const std::size_t count : {0U, 1U, 511U, 512U, 513U, 3000U}) {
    std::vector<float> floats(count), more(count);
    std::vector<double> doubles(count);
    for (std::size_t i = 0; i < count; ++i) {
      floats[i] = static_cast<float>(i) / 4;
      more[i] = 3;
      doubles[i] = 1e300 / static_cast<double>(i + 1);
    }
    const std::vector<float> sums = sum({2, 32, 1}, floats, more);
    const std::vector<double> twice = sum({2, 64, 1}, doubles, doubles);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(sums[i], floats[i] + 3);
      EXPECT_EQ(twice[i], doubles[i] * 2);
    }
  }
}

TEST(Sum, elements_need_no_alignment) {
  std::vector<std::byte> to(1 + 8 * 100), from(3 + 8 * 100);
  for (std::size_t i = 0; i < 100; ++i) {
    const double one = 1, number = static_cast<double>(i);
    std::memcpy(to.data() + 1 + 8 * i, &one, 8);
    std::memcpy(from.data() + 3 + 8 * i, &number, 8);
  }
  adder_of({2, 64, 1})(std::span(to).subspan(1), std::span(from).subspan(3));
  for (std::size_t i = 0; i < 100; ++i) {
    double sum = 0;
    std::memcpy(&sum, to.data() + 1 + 8 * i, 8);
    EXPECT_EQ(sum, static_cast<double>(i) + 1);
  }
}

TEST(Sum, integers_wrap) {
  EXPECT_EQ(sum<std::uint8_t>({1, 8, 1}, {250}, {10}), std::vector<std::uint8_t>{4});
  EXPECT_EQ(sum<std::int16_t>({0, 16, 1}, {-5}, {-6}), std::vector<std::int16_t>{-11});
  EXPECT_EQ(sum<std::int32_t>({0, 32, 1}, {std::numeric_limits<std::int32_t>::max()}, {1}),
            std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()});
  EXPECT_EQ(sum<std::int64_t>({0, 64, 1}, {-1}, {1}), std::vector<std::int64_t>{0});
}

struct Halves {
  std::uint16_t one, other, sum;
};

TEST(Sum, halves_are_rounded_to_the_nearest_and_ties_to_even) {
  const Halves rows[] = {
      {0x3c00, 0x3c00, 0x4000},                            // 1 + 1
      {0x3c00, 0x1000, 0x3c00},                            // 1 + 2^-11: a tie, to even
      {0x3c01, 0x1000, 0x3c02},                            // 1 + 2^-10 + 2^-11: a tie, to even
      {0x3c00, 0x1001, 0x3c01},                            // just above a tie
      {0x0001, 0x0001, 0x0002},                            // the smallest there is, twice
      {0x03ff, 0x0001, 0x0400},                            // the largest subnormal, and one more
      {0x8001, 0x0001, 0x0000}, {0x7bff, 0x7bff, 0x7c00},  // 65504 twice: infinity
      {0x7bff, 0x4b80, 0x7bff},                            // 65504 + 15: rounds down
      {0x7bff, 0x4c00, 0x7c00},                            // 65504 + 16: a tie, to even, which is infinity
      {0xfc00, 0x3c00, 0xfc00}, {0xbc00, 0x4000, 0x3c00},  // -1 + 2
  };
  for (const Halves& each : rows)
    EXPECT_EQ(sum<std::uint16_t>({2, 16, 1}, {each.one}, {each.other})[0], each.sum)
        << std::hex << each.one << " " << each.other;
  const std::uint16_t no_number = sum<std::uint16_t>({2, 16, 1}, {0x7c00}, {0xfc00})[0];
  EXPECT_EQ(no_number & 0x7c00, 0x7c00);
  EXPECT_NE(no_number & 0x3ff, 0);
}

TEST(Sum, bfloats_are_rounded_to_the_nearest_and_ties_to_even) {
  const Halves rows[] = {
      {0x3f80, 0x3f80, 0x4000},                            // 1 + 1
      {0x3f80, 0x3b80, 0x3f80},                            // 1 + 2^-8: a tie, to even
      {0x3f81, 0x3b80, 0x3f82}, {0x7f7f, 0x7f7f, 0x7f80},  // the largest there is, twice
      {0xbf80, 0x3f80, 0x0000},
  };
  for (const Halves& each : rows)
    EXPECT_EQ(sum<std::uint16_t>({4, 16, 1}, {each.one}, {each.other})[0], each.sum)
        << std::hex << each.one << " " << each.other;
  EXPECT_EQ(sum<std::uint16_t>({4, 16, 1}, {0x7f80}, {0xff80})[0] & 0x7fff, 0x7fc0);
}

TEST(Sum, what_is_no_number_cannot_be_added) {
  for (const DType& each :
       {DType{6, 8, 1}, DType{5, 64, 1}, DType{2, 8, 1}, DType{3, 64, 1}, DType{2, 32, 2}})
    EXPECT_EQ(adder_of(each), nullptr) << int{each.code} << " " << int{each.bits};
}

}  // namespace
}  // namespace weir::tensor
