// The base of the readers of listpacks, ziplists and zipmaps: they iterate over the elements once, and know
// at the end whether the bytes were well formed.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "kv/text/number.hpp"

namespace weir::kv::rdb {

class CompactReader {
 public:
  // Whether the bytes read so far were malformed.
  bool broken() const { return broken_; }

 protected:
  explicit CompactReader(std::string_view bytes) : bytes_(bytes) {}

  // Returns false, and sets broken, unless `size` more bytes follow.
  bool has(std::uint64_t size) {
    if (size <= bytes_.size() - at_) return true;
    broken_ = true;
    return false;
  }
  bool fail() {
    broken_ = true;
    return false;
  }
  template <class Number>
  Number number_at(std::size_t offset) const {
    Number number;
    std::memcpy(&number, bytes_.data() + offset, sizeof number);
    return number;
  }
  std::uint8_t byte_at(std::size_t offset) const { return static_cast<std::uint8_t>(bytes_[offset]); }
  std::string_view as_text(std::int64_t value) { return format_int(value, digits_); }
  // A signed three-byte integer.
  std::int64_t int24_at(std::size_t offset) const {
    const std::uint32_t bits = static_cast<std::uint32_t>(byte_at(offset)) << 8 |
                               static_cast<std::uint32_t>(byte_at(offset + 1)) << 16 |
                               static_cast<std::uint32_t>(byte_at(offset + 2)) << 24;
    return static_cast<std::int32_t>(bits) >> 8;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  bool broken_ = false;

 private:
  IntText digits_;
};

}  // namespace weir::kv::rdb
