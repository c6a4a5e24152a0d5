#include "metrics/log_buckets.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::metrics {
namespace {

template <class Place>
void holds_each_value_in_one_bucket(std::uint64_t value) {
  const std::size_t bucket = Place::of(value);
  EXPECT_LE(Place::first_of(bucket), value);
  EXPECT_GE(Place::last_of(bucket), value);
  const std::uint64_t width = Place::last_of(bucket) - Place::first_of(bucket);
  EXPECT_LE(width, value / Place::to_an_octave) << "of " << value;
}

template <class Place>
void holds_many_values() {
  for (std::uint64_t value = 0; value < 100'000; ++value) holds_each_value_in_one_bucket<Place>(value);
  std::mt19937_64 random(4711);
  for (int i = 0; i < 100'000; ++i) holds_each_value_in_one_bucket<Place>(random() >> (random() % 64));
  for (const std::uint64_t value : {~std::uint64_t{0}, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 1})
    holds_each_value_in_one_bucket<Place>(value);
}

TEST(LogBuckets, hold_each_value_and_are_no_wider_than_their_share_of_it) {
  holds_many_values<LogBuckets<4>>();
  holds_many_values<LogBuckets<7>>();
}

TEST(LogBuckets, follow_each_other_without_a_gap) {
  using Place = LogBuckets<7>;
  for (std::size_t bucket = 0; bucket + 1 < Place::count(40); ++bucket) {
    ASSERT_EQ(Place::last_of(bucket) + 1, Place::first_of(bucket + 1));
    ASSERT_EQ(Place::of(Place::first_of(bucket)), bucket);
  }
}

TEST(LogBuckets, are_as_many_as_values_of_so_many_bits_need) {
  using Place = LogBuckets<7>;
  EXPECT_EQ(Place::of((std::uint64_t{1} << 34) - 1) + 1, Place::count(34));
  EXPECT_EQ(Place::of(~std::uint64_t{0}) + 1, Place::count(64));
}

}  // namespace
}  // namespace weir::metrics
