#include "kv/store/listpack.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "kv/heap.hpp"

namespace weir::kv {

namespace {

constexpr std::size_t most_head_bytes = 9;  // an encoding byte and 64 bits
constexpr std::size_t most_backlen_bytes = 5;
constexpr std::uint32_t uncounted = 65535;

unsigned byte_at(const char* at, std::size_t i = 0) { return static_cast<unsigned char>(at[i]); }

std::uint64_t little_endian(const char* at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = bytes; i > 0; --i) value = value << 8 | byte_at(at, i - 1);
  return value;
}
void put_little_endian(char* at, unsigned bytes, std::uint64_t value) {
  for (unsigned i = 0; i < bytes; ++i, value >>= 8) at[i] = static_cast<char>(value & 0xff);
}

// What an encoding byte says. `head` is the bytes in front of the data; an integer has no data, and all of it
// is its head.
enum class Kind : std::uint8_t { text, integer, wrong };
struct Encoding {
  Kind kind;
  std::uint8_t head;
};
Encoding encoding_of(unsigned first) {
  if (first < 0x80) return {Kind::integer, 1};
  if (first < 0xc0) return {Kind::text, 1};
  if (first < 0xe0) return {Kind::integer, 2};
  if (first < 0xf0) return {Kind::text, 2};
  switch (first) {
    case 0xf0:
      return {Kind::text, 5};
    case 0xf1:
      return {Kind::integer, 3};
    case 0xf2:
      return {Kind::integer, 4};
    case 0xf3:
      return {Kind::integer, 5};
    case 0xf4:
      return {Kind::integer, 9};
    default:
      return {Kind::wrong, 1};
  }
}

std::size_t text_size(const char* at, Encoding encoding) {
  switch (encoding.head) {
    case 1:
      return byte_at(at) & 0x3f;
    case 2:
      return (byte_at(at) & 0x0f) << 8 | byte_at(at, 1);
    default:
      return little_endian(at + 1, 4);
  }
}

// Encoding and data.
std::size_t size_of(const char* at) {
  const unsigned first = byte_at(at);
  if (first < 0x80) return 1;
  const Encoding encoding = encoding_of(first);
  return encoding.kind == Kind::text ? encoding.head + text_size(at, encoding) : encoding.head;
}

std::size_t backlen_bytes(std::size_t size) {
  if (size <= 127) return 1;
  if (size < 16383) return 2;
  if (size < 2097151) return 3;
  if (size < 268435455) return 4;
  return 5;
}

// Seven bits a byte, the highest first; all but that one are marked, so that it is found from behind.
std::size_t put_backlen(char* at, std::size_t size) {
  const std::size_t bytes = backlen_bytes(size);
  for (std::size_t i = bytes; i > 0; --i, size >>= 7) {
    at[i - 1] = static_cast<char>((size & 127) | (i == 1 ? 0 : 128));
  }
  return bytes;
}

std::size_t encode_integer(char* out, std::int64_t value) {
  if (value >= 0 && value <= 127) {
    out[0] = static_cast<char>(value);
    return 1;
  }
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= -4096 && value <= 4095) {
    out[0] = static_cast<char>((bits >> 8 & 0x1f) | 0xc0);
    out[1] = static_cast<char>(bits & 0xff);
    return 2;
  }
  const auto with = [&](unsigned encoding, unsigned bytes) {
    out[0] = static_cast<char>(encoding);
    put_little_endian(out + 1, bytes, bits);
    return std::size_t{bytes} + 1;
  };
  if (value >= -32768 && value <= 32767) return with(0xf1, 2);
  if (value >= -8388608 && value <= 8388607) return with(0xf2, 3);
  if (value >= -2147483648 && value <= 2147483647) return with(0xf3, 4);
  return with(0xf4, 8);
}

std::size_t encode_text_head(char* out, std::size_t size) {
  if (size < 64) {
    out[0] = static_cast<char>(size | 0x80);
    return 1;
  }
  if (size < 4096) {
    out[0] = static_cast<char>(size >> 8 | 0xe0);
    out[1] = static_cast<char>(size & 0xff);
    return 2;
  }
  out[0] = static_cast<char>(0xf0);
  put_little_endian(out + 1, 4, size);
  return 5;
}

}  // namespace

namespace listpack {

Place next(Place at) {
  const std::size_t size = size_of(at);
  return at + size + backlen_bytes(size);
}

Place previous(Place at) {
  std::size_t size = 0;
  unsigned shift = 0;
  unsigned byte = 0;
  do {
    byte = byte_at(--at);
    size |= std::size_t{byte & 127} << shift;
    shift += 7;
  } while ((byte & 128) != 0 && shift < 7 * most_backlen_bytes);
  return at - size;
}

bool is_integer(Place at) { return encoding_of(byte_at(at)).kind == Kind::integer; }

std::int64_t integer(Place at) {
  const unsigned first = byte_at(at);
  if (first < 0x80) return first;
  const Encoding encoding = encoding_of(first);
  if (encoding.kind != Kind::integer) return 0;
  const auto extended = [](std::uint64_t bits, unsigned width) {
    return static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
  };
  if (encoding.head == 2) return extended((first & 0x1f) << 8 | byte_at(at, 1), 13);
  const unsigned bytes = encoding.head - 1u;
  return extended(little_endian(at + 1, bytes), bytes * 8);
}

std::string_view text(Place at, IntText& room) {
  const Encoding encoding = encoding_of(byte_at(at));
  if (encoding.kind == Kind::text) return {at + encoding.head, text_size(at, encoding)};
  return format_int(integer(at), room);
}

bool check(std::string_view bytes) {
  if (bytes.size() < least_bytes || little_endian(bytes.data(), 4) != bytes.size()) return false;
  const std::uint64_t counted = little_endian(bytes.data() + 4, 2);
  const char* at = bytes.data() + header_bytes;
  const char* const last = bytes.data() + bytes.size() - 1;
  std::uint64_t elements = 0;
  while (at < last) {
    const Encoding encoding = encoding_of(byte_at(at));
    if (encoding.kind == Kind::wrong || encoding.head > last - at) return false;
    const std::size_t size = size_of(at);
    const std::size_t behind = backlen_bytes(size);
    if (size + behind > static_cast<std::size_t>(last - at)) return false;
    char expected[most_backlen_bytes];
    put_backlen(expected, size);
    if (std::memcmp(expected, at + size, behind) != 0) return false;
    at += size + behind;
    ++elements;
  }
  return is_end(last) && (counted == uncounted ? elements >= uncounted : elements == counted);
}

}  // namespace listpack

Listpack::Listpack(std::size_t room) {
  const std::size_t capacity = std::max(room, listpack::least_bytes);
  bytes_ = static_cast<char*>(allocate(capacity));
  capacity_ = static_cast<std::uint32_t>(capacity);
  set_size(listpack::least_bytes);
  put_little_endian(bytes_ + 4, 2, 0);
  bytes_[listpack::header_bytes] = static_cast<char>(0xff);
}

Listpack::Listpack(std::string_view bytes)
    : bytes_(static_cast<char*>(allocate(bytes.size()))),
      capacity_(static_cast<std::uint32_t>(bytes.size())) {
  std::memcpy(bytes_, bytes.data(), bytes.size());
}

Listpack::~Listpack() {
  if (bytes_ != nullptr) free_allocated(bytes_);
}

std::size_t Listpack::size() const { return little_endian(bytes_, 4); }
void Listpack::set_size(std::size_t size) { put_little_endian(bytes_, 4, size); }

void Listpack::reserve(std::size_t more) {
  const std::size_t needed = size() + more;
  if (needed <= capacity_) return;
  const std::size_t capacity =
      std::max(needed, std::min<std::size_t>(2 * std::size_t{capacity_}, needed + 4096));
  bytes_ = static_cast<char*>(resized(bytes_, capacity));
  capacity_ = static_cast<std::uint32_t>(capacity);
}

void Listpack::shrink_to_fit() {
  const std::size_t needed = size();
  if (needed + needed / 16 >= capacity_) return;
  bytes_ = static_cast<char*>(resized(bytes_, needed));
  capacity_ = static_cast<std::uint32_t>(needed);
}

void Listpack::append(std::string_view text) {
  if (const auto value = parse_int(text)) return append(*value);
  char head[most_head_bytes];
  const std::size_t head_size = encode_text_head(head, text.size());
  append_encoded(head, head_size, text);
}

void Listpack::append(std::int64_t value) {
  char head[most_head_bytes];
  const std::size_t head_size = encode_integer(head, value);
  append_encoded(head, head_size, {});
}

void Listpack::append_encoded(const char* head, std::size_t head_size, std::string_view data) {
  const std::size_t size = head_size + data.size();
  reserve(size + most_backlen_bytes);
  const std::size_t before = this->size();
  char* at = bytes_ + before - 1;
  std::memcpy(at, head, head_size);
  if (!data.empty()) std::memcpy(at + head_size, data.data(), data.size());
  at += size;
  at += put_backlen(at, size);
  *at = static_cast<char>(0xff);
  set_size(static_cast<std::size_t>(at + 1 - bytes_));
  const std::uint64_t elements = little_endian(bytes_ + 4, 2);
  if (elements != uncounted) put_little_endian(bytes_ + 4, 2, elements + 1);
}

listpack::Place Listpack::replace(listpack::Place place, std::int64_t value) {
  char fresh[most_head_bytes + 1];
  const std::size_t head_size = encode_integer(fresh, value);
  const std::size_t fresh_size = head_size + put_backlen(fresh + head_size, head_size);
  const auto offset = static_cast<std::size_t>(place - bytes_);
  const auto old_size = static_cast<std::size_t>(listpack::next(place) - place);
  if (fresh_size > old_size) reserve(fresh_size - old_size);
  char* at = bytes_ + offset;
  const std::size_t before = size();
  if (fresh_size != old_size) {
    std::memmove(at + fresh_size, at + old_size, before - offset - old_size);
    set_size(before + fresh_size - old_size);
  }
  std::memcpy(at, fresh, fresh_size);
  return at;
}

}  // namespace weir::kv
