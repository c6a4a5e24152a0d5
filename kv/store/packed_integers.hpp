// A sorted row of different integers of 2, 4 or 8 bytes, all as wide as the widest has needed (Redis's
// intset).
//
// A few lie in the object itself, more in a piece of memory beside it. Finding one takes logarithmic time,
// adding and removing one moves those behind it. It may lie at any address, and be moved by moving its bytes.
// Threading: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace weir::kv {

class PackedIntegers {
 public:
  PackedIntegers() = default;
  PackedIntegers(PackedIntegers&& other) noexcept { swap(other); }
  PackedIntegers& operator=(PackedIntegers&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PackedIntegers();
  PackedIntegers copy() const;

  std::size_t size() const { return lies_inside() ? count_ : outside_size(); }
  std::int64_t operator[](std::size_t index) const;
  bool contains(std::int64_t value) const;
  // Appends them, in ascending order.
  void append_to(std::vector<std::int64_t>& numbers) const;
  // Keeps those of `numbers`, which ascend, that are here, too. Linear in the shorter row, and at most
  // logarithmic in this one for each number.
  void keep_common(std::vector<std::int64_t>& numbers) const;
  // True: it is new.
  bool insert(std::int64_t value);
  // True: it was there.
  bool erase(std::int64_t value);

  std::size_t heap_size() const;

 private:
  static constexpr std::size_t inside_bytes = 21;
  static constexpr std::uint8_t outside = 0xff;

  bool lies_inside() const { return count_ != outside; }
  std::uint32_t outside_size() const {
    std::uint32_t size;
    std::memcpy(&size, inside_ + sizeof(char*), sizeof size);
    return size;
  }
  char* outside_bytes() const {
    char* bytes;
    std::memcpy(&bytes, inside_, sizeof bytes);
    return bytes;
  }
  const char* bytes() const { return lies_inside() ? inside_ : outside_bytes(); }
  void swap(PackedIntegers& other) noexcept;
  void lie_outside(char* bytes, std::size_t size);
  std::size_t first_not_below(std::int64_t value) const;
  void put(char* row, std::size_t index, std::int64_t value) const;
  void insert_at(std::size_t index, std::int64_t value);
  void erase_at(std::size_t index);
  void widen(std::uint8_t width);

  char inside_[inside_bytes] = {};  // the integers; or the address of the piece, and how many are there
  std::uint8_t count_ = 0;          // of those inside; or `outside`
  std::uint8_t width_ = 2;
};
static_assert(sizeof(PackedIntegers) == 23 && alignof(PackedIntegers) == 1);

}  // namespace weir::kv
