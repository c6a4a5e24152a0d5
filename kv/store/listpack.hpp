// Redis's listpack: a row of texts and integers in one piece of memory, which can be walked from both ends.
//
//   bytes (4, little endian), elements (2; 65535: more than that), the elements, 0xff
//
// An element is its encoding, its data (kv/store/listpack_element.hpp), and the size of both in front of its
// successor. The format is Redis's because what is kept so goes into RDB files and DUMP's answers as it is,
// and because trimming by whole nodes shows where nodes end.
//
// The functions that read trust the bytes: what comes from outside passes check() first. Threading: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "kv/store/listpack_element.hpp"

namespace weir::kv::listpack {

inline constexpr std::size_t header_bytes = 6;
inline constexpr std::size_t least_bytes = header_bytes + 1;

inline bool is_end(Place at) { return static_cast<unsigned char>(*at) == 0xff; }
Place next(Place at);
Place previous(Place at);  // there must be one
// Over so many.
inline Place skip(Place at, std::size_t elements) {
  for (; elements != 0; --elements) at = next(at);
  return at;
}

// An element with its size behind it.
std::size_t bytes_in_row(const Element& element);
// Returns where it ends.
char* put_in_row(char* at, const Element& element);

// Whether these bytes are a listpack, from its header to its end, each element within it.
bool check(std::string_view bytes);

}  // namespace weir::kv::listpack

namespace weir::kv {

// One that is owned and changes.
class Listpack {
 public:
  // An empty one with room for so many bytes.
  explicit Listpack(std::size_t room);
  // A copy of bytes that passed check().
  explicit Listpack(std::string_view bytes);
  Listpack(Listpack&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  Listpack& operator=(Listpack&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Listpack();

  std::size_t size() const;
  std::size_t capacity() const { return capacity_; }
  std::string_view view() const { return {bytes_, size()}; }
  listpack::Place begin() const { return bytes_ + listpack::header_bytes; }
  listpack::Place end() const { return bytes_ + size() - 1; }

  void append(std::string_view text);
  void append(std::int64_t value);
  // Places behind it move if the new one is longer or shorter; returns where it is now.
  listpack::Place replace(listpack::Place at, std::int64_t value);
  // Makes room for so many more bytes, and some.
  void reserve(std::size_t more);
  void shrink_to_fit();

 private:
  void append(const listpack::Element& element);
  void set_size(std::size_t size);

  char* bytes_;
  std::uint32_t capacity_;
};

}  // namespace weir::kv
