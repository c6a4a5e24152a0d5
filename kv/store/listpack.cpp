#include "kv/store/listpack.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "kv/text/heap.hpp"

namespace weir::kv {

namespace {

using listpack::little_endian;
using listpack::put_little_endian;

constexpr std::size_t most_backlen_bytes = 5;
constexpr std::uint32_t uncounted = 65535;

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

}  // namespace

namespace listpack {

Place next(Place at) {
  const std::size_t size = element_bytes(at);
  return at + size + backlen_bytes(size);
}

Place previous(Place at) {
  std::size_t size = 0;
  unsigned shift = 0;
  unsigned byte = 0;
  do {
    byte = static_cast<unsigned char>(*--at);
    size |= std::size_t{byte & 127} << shift;
    shift += 7;
  } while ((byte & 128) != 0 && shift < 7 * most_backlen_bytes);
  return at - size;
}

std::size_t bytes_in_row(const Element& element) { return element.size() + backlen_bytes(element.size()); }

char* put_in_row(char* at, const Element& element) {
  char* const behind = element.put(at);
  return behind + put_backlen(behind, element.size());
}

bool check(std::string_view bytes) {
  if (bytes.size() < least_bytes || little_endian(bytes.data(), 4) != bytes.size()) return false;
  const std::uint64_t counted = little_endian(bytes.data() + 4, 2);
  const char* at = bytes.data() + header_bytes;
  const char* const last = bytes.data() + bytes.size() - 1;
  std::uint64_t elements = 0;
  while (at < last) {
    const Encoding encoding = encoding_of(static_cast<unsigned char>(*at));
    if (encoding.kind == Kind::wrong || encoding.head > last - at) return false;
    const std::size_t size = element_bytes(at);
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

void Listpack::append(std::string_view text) { append(listpack::Element(text)); }
void Listpack::append(std::int64_t value) { append(listpack::Element(value)); }

void Listpack::append(const listpack::Element& element) {
  reserve(listpack::bytes_in_row(element));
  char* const at = listpack::put_in_row(bytes_ + size() - 1, element);
  *at = static_cast<char>(0xff);
  set_size(static_cast<std::size_t>(at + 1 - bytes_));
  const std::uint64_t elements = little_endian(bytes_ + 4, 2);
  if (elements != uncounted) put_little_endian(bytes_ + 4, 2, elements + 1);
}

listpack::Place Listpack::replace(listpack::Place place, std::int64_t value) {
  const listpack::Element fresh(value);
  const std::size_t fresh_size = listpack::bytes_in_row(fresh);
  const auto offset = static_cast<std::size_t>(place - bytes_);
  const auto old_size = static_cast<std::size_t>(listpack::next(place) - place);
  if (fresh_size > old_size) reserve(fresh_size - old_size);
  char* at = bytes_ + offset;
  const std::size_t before = size();
  if (fresh_size != old_size) {
    std::memmove(at + fresh_size, at + old_size, before - offset - old_size);
    set_size(before + fresh_size - old_size);
  }
  listpack::put_in_row(at, fresh);
  return at;
}

}  // namespace weir::kv
