// Numbers in the fixed little-endian layout of this folder's formats, with bounds. Pure.
//
// A Reader never reads beyond its bytes: missing bytes read as zero and ok() turns false, so a parser checks
// once, at its end. A Writer appends.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::tensor {

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  T number() {
    T value = 0;
    const std::span<const std::byte> from = take(sizeof(T));
    for (std::size_t i = 0; i < from.size(); ++i)
      value |= static_cast<T>(std::to_integer<std::uint64_t>(from[i]) << (8 * i));
    return value;
  }
  std::string_view text(std::size_t bytes) {
    const std::span<const std::byte> from = take(bytes);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::span<const std::byte> taken = bytes_.first(bytes);
    bytes_ = bytes_.subspan(bytes);
    return taken;
  }
  std::size_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }
  // Everything was read, and nothing was missing.
  bool finished() const { return ok_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

class Writer {
 public:
  template <std::unsigned_integral T>
  Writer& number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }
  Writer& text(std::string_view from) { return append(std::as_bytes(std::span(from))); }
  Writer& append(std::span<const std::byte> from) {
    bytes_.insert(bytes_.end(), from.begin(), from.end());
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace weir::tensor
