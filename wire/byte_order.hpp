// Big-endian numbers in bytes: reading that cannot run off the end, and appending.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::wire {

// A number of the host in network order, and back.
constexpr std::uint32_t swap_network(std::uint32_t value) {
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // `count` bytes as one number; zero, and failed() from then on, when there are not that many.
  std::uint64_t number(std::size_t count) {
    std::uint64_t value = 0;
    for (const std::byte byte : take(count)) value = value << 8 | std::to_integer<std::uint64_t>(byte);
    return value;
  }
  template <class T>
  T number() {
    return static_cast<T>(number(sizeof(T)));
  }
  std::span<const std::byte> take(std::size_t count) {
    if (count > bytes_.size()) {
      failed_ = true;
      return {};
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  std::size_t left() const { return bytes_.size(); }
  bool failed() const { return failed_; }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

inline void put(std::vector<std::byte>& to, std::uint64_t value, std::size_t count) {
  while (count-- > 0) to.push_back(static_cast<std::byte>(value >> (8 * count)));
}
template <std::unsigned_integral T>
void put(std::vector<std::byte>& to, T value) {
  put(to, static_cast<std::uint64_t>(value), sizeof(T));
}
inline void put(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace weir::wire
