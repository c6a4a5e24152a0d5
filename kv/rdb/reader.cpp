#include "kv/rdb/reader.hpp"

#include <lzf.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kv/rdb/checksum.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::rdb {

namespace {

// An LZF match takes three bytes and expands to at most 264.
constexpr std::uint64_t best_ratio = 264;
constexpr std::uint64_t grown_at_once = 1 << 20;

}  // namespace

Reader::Reader(Source& source) : source_(&source), buffer_(std::make_unique<char[]>(buffer_size)) {}

void Reader::count() {
  if (source_ == nullptr) return;
  const auto until = static_cast<std::size_t>(rest_.data() - buffer_.get());
  sum_ = checksum(sum_, {buffer_.get() + counted_, until - counted_});
  counted_ = until;
}

std::uint64_t Reader::sum() {
  if (!failed() && taken_ != 0) count();
  return sum_;
}

// Call only when the whole buffer was read.
bool Reader::refill() {
  if (failed()) return false;
  if (source_ != nullptr) {
    if (taken_ != 0) count();
    const std::size_t size = source_->read(buffer_.get(), buffer_size);
    counted_ = 0;
    taken_ += size;
    rest_ = {buffer_.get(), size};
    if (size != 0) return true;
  }
  fail(Error::Kind::truncated, "the bytes end too early");
  return false;
}

std::string_view Reader::raw(std::uint64_t size) {
  if (size <= rest_.size()) {
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  if (source_ == nullptr) {
    fail(Error::Kind::truncated, "the bytes end too early");
    return no_bytes;
  }
  // Grow with the bytes that arrive, not to the announced size.
  scratch_.clear();
  while (scratch_.size() < size) {
    if (rest_.empty() && !refill()) return no_bytes;
    const std::size_t some = std::min<std::uint64_t>(size - scratch_.size(), rest_.size());
    scratch_.append(rest_.substr(0, some));
    rest_.remove_prefix(some);
  }
  return scratch_;
}

template <class Number>
Number Reader::fixed() {
  Number number{};
  const std::string_view bytes = raw(sizeof number);
  if (bytes.size() == sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

std::uint8_t Reader::byte() {
  if (rest_.empty() && !refill()) return 0;
  const auto value = static_cast<std::uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return value;
}

double Reader::eight_byte_double() { return fixed<double>(); }
std::int64_t Reader::milliseconds() { return fixed<std::int64_t>(); }
std::uint64_t Reader::stored_checksum() { return fixed<std::uint64_t>(); }
float Reader::four_byte_float() { return fixed<float>(); }
std::int32_t Reader::seconds() { return fixed<std::int32_t>(); }

double Reader::text_double() {
  constexpr std::uint8_t nan = 253, infinity = 254, minus_infinity = 255;
  const std::uint8_t size = byte();
  if (size == nan) return std::nan("");
  if (size == infinity) return std::numeric_limits<double>::infinity();
  if (size == minus_infinity) return -std::numeric_limits<double>::infinity();
  const auto value = parse_double(raw(size));
  if (!value) corrupt("a score is no number");
  return value.value_or(0);
}

std::uint64_t Reader::length() {
  const std::uint8_t first = byte();
  switch (first >> 6) {
    case length_6_bits:
      return first & 0x3f;
    case length_14_bits:
      return static_cast<std::uint64_t>(first & 0x3f) << 8 | byte();
    case length_special:
      if (first == length_32_bits) return __builtin_bswap32(fixed<std::uint32_t>());
      if (first == length_64_bits) return __builtin_bswap64(fixed<std::uint64_t>());
      break;
    default:
      break;
  }
  corrupt("no length where one must be");
  return 0;
}

std::string_view Reader::integer(std::int64_t value) {
  IntText text;
  scratch_ = format_int(value, text);
  return scratch_;
}

std::string_view Reader::decompressed() {
  const std::uint64_t packed_size = length();
  const std::uint64_t size = length();
  if (failed()) return no_bytes;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  if (packed_size == 0 || size == 0 || packed_size > most || size > most || size / best_ratio > packed_size) {
    corrupt("a compressed text has lengths that cannot be");
    return no_bytes;
  }
  if (size > budget_) {
    fail(Error::Kind::too_large, "decompressed it is larger than allowed");
    return no_bytes;
  }
  const std::string_view packed = raw(packed_size);
  if (failed()) return no_bytes;
  if (budget_ != no_limit) budget_ -= size;
  unpacked_.resize(size);
  if (lzf_decompress(packed.data(), static_cast<unsigned>(packed_size), unpacked_.data(),
                     static_cast<unsigned>(size)) != size) {
    corrupt("a compressed text does not decompress");
    return no_bytes;
  }
  return unpacked_;
}

std::string_view Reader::text() {
  if (rest_.empty() && !refill()) return no_bytes;
  const auto first = static_cast<std::uint8_t>(rest_.front());
  if (first >> 6 != text_encoded) return raw(length());
  rest_.remove_prefix(1);
  switch (first & 0x3f) {
    case text_int8:
      return integer(fixed<std::int8_t>());
    case text_int16:
      return integer(fixed<std::int16_t>());
    case text_int32:
      return integer(fixed<std::int32_t>());
    case text_lzf:
      return decompressed();
    default:
      break;
  }
  corrupt("a text is encoded in an unknown way");
  return no_bytes;
}

}  // namespace weir::kv::rdb
