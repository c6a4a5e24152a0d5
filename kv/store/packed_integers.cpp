#include "kv/store/packed_integers.hpp"

#include <utility>

#include "kv/store/tight_room.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {

namespace {

std::uint8_t width_of(std::int64_t value) {
  if (value == static_cast<std::int16_t>(value)) return 2;
  return value == static_cast<std::int32_t>(value) ? 4 : 8;
}

template <class Integer>
std::int64_t read(const char* row, std::size_t index) {
  Integer value;
  std::memcpy(&value, row + index * sizeof value, sizeof value);
  return value;
}

// The first place in [at, size) whose number is not below `value`. Doubles its steps: what is looked for is
// mostly near.
template <class Integer>
std::size_t not_below_from(const char* row, std::size_t at, std::size_t size, std::int64_t value) {
  std::size_t step = 1;
  while (at < size && read<Integer>(row, at) < value) {
    const std::size_t next = at + step;
    if (next < size && read<Integer>(row, next) < value) {
      at = next + 1;
      step *= 2;
    } else {
      ++at;
      step = 1;
    }
  }
  return at;
}

template <class Integer>
void keep_common_in(const char* row, std::size_t size, std::vector<std::int64_t>& numbers) {
  std::size_t at = 0;
  std::size_t kept = 0;
  for (const std::int64_t number : numbers) {
    at = not_below_from<Integer>(row, at, size, number);
    if (at == size) break;
    if (read<Integer>(row, at) == number) numbers[kept++] = number;
  }
  numbers.resize(kept);
}

}  // namespace

PackedIntegers::~PackedIntegers() {
  if (!lies_inside()) free_allocated(outside_bytes());
}

PackedIntegers PackedIntegers::copy() const {
  PackedIntegers other;
  other.width_ = width_;
  if (lies_inside()) {
    std::memcpy(other.inside_, inside_, inside_bytes);
    other.count_ = count_;
    return other;
  }
  const std::size_t bytes = size() * width_;
  char* const row = static_cast<char*>(allocate(tight_capacity(bytes)));
  std::memcpy(row, outside_bytes(), bytes);
  other.lie_outside(row, size());
  return other;
}

void PackedIntegers::swap(PackedIntegers& other) noexcept {
  std::swap(inside_, other.inside_);
  std::swap(count_, other.count_);
  std::swap(width_, other.width_);
}

void PackedIntegers::lie_outside(char* bytes, std::size_t size) {
  const auto count = static_cast<std::uint32_t>(size);
  std::memcpy(inside_, &bytes, sizeof bytes);
  std::memcpy(inside_ + sizeof bytes, &count, sizeof count);
  count_ = outside;
}

std::size_t PackedIntegers::heap_size() const { return lies_inside() ? 0 : tight_capacity(size() * width_); }

std::int64_t PackedIntegers::operator[](std::size_t index) const {
  switch (width_) {
    case 2:
      return read<std::int16_t>(bytes(), index);
    case 4:
      return read<std::int32_t>(bytes(), index);
    default:
      return read<std::int64_t>(bytes(), index);
  }
}

void PackedIntegers::append_to(std::vector<std::int64_t>& numbers) const {
  const std::size_t count = size();
  numbers.reserve(numbers.size() + count);
  for (std::size_t i = 0; i < count; ++i) numbers.push_back((*this)[i]);
}

void PackedIntegers::keep_common(std::vector<std::int64_t>& numbers) const {
  switch (width_) {
    case 2:
      return keep_common_in<std::int16_t>(bytes(), size(), numbers);
    case 4:
      return keep_common_in<std::int32_t>(bytes(), size(), numbers);
    default:
      return keep_common_in<std::int64_t>(bytes(), size(), numbers);
  }
}

void PackedIntegers::put(char* row, std::size_t index, std::int64_t value) const {
  // The low bytes come first.
  std::memcpy(row + index * width_, &value, width_);
}

std::size_t PackedIntegers::first_not_below(std::int64_t value) const {
  std::size_t first = 0;
  for (std::size_t left = size(); left > 0;) {
    const std::size_t half = left / 2;
    if ((*this)[first + half] < value) {
      first += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return first;
}

bool PackedIntegers::contains(std::int64_t value) const {
  const std::size_t index = first_not_below(value);
  return index < size() && (*this)[index] == value;
}

bool PackedIntegers::insert(std::int64_t value) {
  const std::size_t index = first_not_below(value);
  if (index < size() && (*this)[index] == value) return false;
  if (const std::uint8_t needed = width_of(value); needed > width_) widen(needed);
  insert_at(index, value);
  return true;
}

bool PackedIntegers::erase(std::int64_t value) {
  const std::size_t index = first_not_below(value);
  if (index == size() || (*this)[index] != value) return false;
  erase_at(index);
  return true;
}

void PackedIntegers::widen(std::uint8_t width) {
  PackedIntegers wider;
  wider.width_ = width;
  for (std::size_t i = 0; i < size(); ++i) wider.insert_at(i, (*this)[i]);
  swap(wider);
}

void PackedIntegers::insert_at(std::size_t index, std::int64_t value) {
  const std::size_t before = size() * width_;
  const std::size_t after = before + width_;
  char* row = inside_;
  if (!lies_inside()) {
    row = outside_bytes();
    if (tight_capacity(before) != tight_capacity(after))
      row = static_cast<char*>(resized(row, tight_capacity(after)));
    lie_outside(row, size() + 1);
  } else if (after > inside_bytes) {
    row = static_cast<char*>(allocate(tight_capacity(after)));
    std::memcpy(row, inside_, before);
    lie_outside(row, size() + 1);
  } else {
    ++count_;
  }
  char* const at = row + index * width_;
  std::memmove(at + width_, at, before - index * width_);
  put(row, index, value);
}

void PackedIntegers::erase_at(std::size_t index) {
  const std::size_t before = size() * width_;
  const std::size_t after = before - width_;
  char* row = lies_inside() ? inside_ : outside_bytes();
  char* const at = row + index * width_;
  std::memmove(at, at + width_, after - index * width_);
  if (lies_inside()) {
    --count_;
  } else if (after <= inside_bytes) {
    count_ = static_cast<std::uint8_t>(after / width_);
    std::memcpy(inside_, row, after);
    free_allocated(row);
  } else {
    if (tight_capacity(before) != tight_capacity(after))
      row = static_cast<char*>(resized(row, tight_capacity(after)));
    lie_outside(row, after / width_);
  }
}

}  // namespace weir::kv
