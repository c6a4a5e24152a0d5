// The bucket in which a value is counted. Log-linear: 2^bits buckets per octave, so that the width of a
// bucket is at most 1 / 2^bits of the values in it. Finding it takes a shift and an addition. Pure.
//
// Below 2^(bits + 1) each bucket holds one value. HdrHistogram, and therefore Redis's latency
// histograms, use this layout.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::metrics {

template <unsigned bits>
struct LogBuckets {
  static constexpr std::size_t to_an_octave = std::size_t{1} << bits;
  // The number of buckets for values of so many bits.
  static constexpr std::size_t count(unsigned value_bits) {
    return std::size_t{value_bits - bits + 1} << bits;
  }
  static constexpr std::size_t of(std::uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > bits + 1 ? width - bits - 1 : 0;
    return (std::size_t{shift} << bits) + static_cast<std::size_t>(value >> shift);
  }
  // The smallest value of a bucket; one less is the largest of the previous bucket. Wraps to 0 after the
  // last bucket for 64-bit values.
  static constexpr std::uint64_t first_of(std::size_t bucket) {
    const std::size_t octave = bucket >> bits;
    const std::size_t shift = octave > 1 ? octave - 1 : 0;
    return std::uint64_t{bucket - (shift << bits)} << shift;
  }
  static constexpr std::uint64_t last_of(std::size_t bucket) { return first_of(bucket + 1) - 1; }
};

}  // namespace weir::metrics
