// One text or integer as Redis's listpacks encode it: a head that says what it is, and the text's bytes.
//
// Text that is an integer as Redis prints one is encoded as that integer, so a text has one encoding only and
// two are equal when their bytes are. A listpack (kv/store/listpack.hpp) puts an element's size behind it;
// PackedPairs, which are walked forward only, do not.
//
// The functions that read trust the bytes. Threading: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "kv/text/number.hpp"

namespace weir::kv::listpack {

// An element's address.
using Place = const char*;

inline std::uint64_t little_endian(Place at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = bytes; i > 0; --i) value = value << 8 | static_cast<unsigned char>(at[i - 1]);
  return value;
}
inline void put_little_endian(char* at, unsigned bytes, std::uint64_t value) {
  for (unsigned i = 0; i < bytes; ++i, value >>= 8) at[i] = static_cast<char>(value & 0xff);
}

// What an encoding byte says. `head` is the bytes in front of the data; an integer has no data, and all of it
// is its head.
enum class Kind : std::uint8_t { text, integer, wrong };
struct Encoding {
  Kind kind;
  std::uint8_t head;
};
Encoding encoding_of(unsigned first);
std::size_t text_size(Place at, Encoding encoding);

std::size_t long_element_bytes(Place at);
// Encoding and data.
inline std::size_t element_bytes(Place at) {
  const unsigned first = static_cast<unsigned char>(*at);
  if (first < 0x80) return 1;                   // a small integer
  if (first < 0xc0) return 1 + (first & 0x3f);  // a short text
  return long_element_bytes(at);
}

// An element as text; of an integer in `room`.
std::string_view text(Place at, IntText& room);
// 0 for what is text.
std::int64_t integer(Place at);
bool is_integer(Place at);

// One that is to be written or looked for. The text must outlive it.
class Element {
 public:
  explicit Element(std::string_view text);
  explicit Element(std::int64_t value);
  // Text even if it looks like an integer.
  static Element bytes(std::string_view text);

  std::size_t size() const { return head_size_ + data_.size(); }
  // Writes size() bytes; returns their end.
  char* put(char* at) const {
    std::memcpy(at, head_, head_size_);
    if (!data_.empty()) std::memcpy(at + head_size_, data_.data(), data_.size());
    return at + size();
  }
  // The first byte says how long a head is and the head how long the data are, so nothing is read beyond the
  // element there.
  bool is_at(Place at) const {
    return *at == head_[0] && std::memcmp(at, head_, head_size_) == 0 &&
           std::memcmp(at + head_size_, data_.data(), data_.size()) == 0;
  }

 private:
  Element() = default;
  void set_text(std::string_view text);
  void set_integer(std::int64_t value);

  static constexpr std::size_t most_head_bytes = 9;  // an encoding byte and 64 bits

  std::string_view data_ = {"", 0};
  char head_[most_head_bytes];
  std::uint8_t head_size_ = 0;
};

}  // namespace weir::kv::listpack
