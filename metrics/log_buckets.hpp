// Which bucket a value is counted in: log-linear, 2^bits buckets to an octave, so that a bucket is at most
// 1 / 2^bits as wide as what it holds. Finding it is a shift and an addition. Pure.
//
// Below 2^(bits + 1) a bucket holds one value. HdrHistogram, and so Redis's latency histograms, are laid out
// like this.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::metrics {

template <unsigned bits>
struct LogBuckets {
  static constexpr std::size_t to_an_octave = std::size_t{1} << bits;
  // How many buckets values of so many bits need.
  static constexpr std::size_t count(unsigned value_bits) {
    return std::size_t{value_bits - bits + 1} << bits;
  }
  static constexpr std::size_t of(std::uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > bits + 1 ? width - bits - 1 : 0;
    return (std::size_t{shift} << bits) + static_cast<std::size_t>(value >> shift);
  }
  // The least value of a bucket; that of the next less one is its greatest. Wraps to 0 behind the last that a
  // value of 64 bits can be in.
  static constexpr std::uint64_t first_of(std::size_t bucket) {
    const std::size_t octave = bucket >> bits;
    const std::size_t shift = octave > 1 ? octave - 1 : 0;
    return std::uint64_t{bucket - (shift << bits)} << shift;
  }
  static constexpr std::uint64_t last_of(std::size_t bucket) { return first_of(bucket + 1) - 1; }
};

}  // namespace weir::metrics
