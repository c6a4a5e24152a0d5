// Packet sequence numbers: 24 bits that wrap around, compared within half of their range (IBA 9.7.1).
#pragma once

#include <cstdint>

namespace weir::rnic::packet {

class Psn {
 public:
  constexpr Psn() = default;
  constexpr explicit Psn(std::uint32_t value) : value_(value & 0xffffff) {}
  constexpr std::uint32_t value() const { return value_; }
  // How far `this` is ahead of `other`; negative: behind it.
  constexpr std::int32_t operator-(Psn other) const {
    return static_cast<std::int32_t>((value_ - other.value_) << 8) >> 8;
  }
  constexpr Psn operator+(std::uint32_t count) const { return Psn(value_ + count); }
  constexpr Psn& operator++() { return *this = *this + 1; }
  friend constexpr bool operator==(Psn, Psn) = default;
  friend constexpr bool operator<(Psn a, Psn b) { return a - b < 0; }
  friend constexpr bool operator>(Psn a, Psn b) { return a - b > 0; }
  friend constexpr bool operator<=(Psn a, Psn b) { return a - b <= 0; }
  friend constexpr bool operator>=(Psn a, Psn b) { return a - b >= 0; }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace weir::rnic::packet
