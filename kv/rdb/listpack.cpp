#include "kv/rdb/listpack.hpp"

namespace weir::kv::rdb {

namespace {

constexpr std::size_t listpack_header = 6;
constexpr std::uint8_t end_mark = 0xff;
constexpr std::size_t count_them = 65535;

}  // namespace

Listpack::Listpack(std::string_view bytes) : CompactReader(bytes) {
  if (bytes.size() <= listpack_header || number_at<std::uint32_t>(0) != bytes.size()) {
    broken_ = true;
    return;
  }
  announced_ = number_at<std::uint16_t>(4);
  at_ = listpack_header;
}

bool Listpack::end() {
  const bool counts = announced_ == count_them || announced_ == seen_;
  if (at_ + 1 != bytes_.size() || !counts) broken_ = true;
  return false;
}

bool Listpack::size_backwards(std::size_t begin) {
  const std::uint64_t size = at_ - begin;
  // These limits are Redis's; all but the first are one lower than seven bits a byte would allow.
  const unsigned groups = size <= 127 ? 1 : size < 16383 ? 2 : size < 2097151 ? 3 : size < 268435455 ? 4 : 5;
  if (!has(groups)) return false;
  for (unsigned group = 0; group < groups; ++group) {
    const auto bits = static_cast<std::uint8_t>(size >> 7 * (groups - 1 - group) & 0x7f);
    if (byte_at(at_ + group) != (group == 0 ? bits : bits | 0x80)) return fail();
  }
  at_ += groups;
  ++seen_;
  return true;
}

bool Listpack::next(std::string_view& element) {
  if (broken_ || !has(1)) return false;
  const std::size_t begin = at_;
  const std::uint8_t first = byte_at(at_);
  std::uint64_t text_size = 0;
  std::size_t head = 1;  // bytes of the encoding, including an integer's value
  std::int64_t value = 0;
  bool is_text = false;
  if (first == end_mark) return end();
  if (first < 0x80) {
    value = first;
  } else if (first < 0xc0) {
    is_text = true;
    text_size = first & 0x3f;
  } else if (first < 0xe0) {
    if (!has(head = 2)) return false;
    const unsigned bits = (first & 0x1fu) << 8 | byte_at(at_ + 1);
    value = bits < 1u << 12 ? static_cast<std::int64_t>(bits) : static_cast<std::int64_t>(bits) - (1 << 13);
  } else if (first < 0xf0) {
    if (!has(head = 2)) return false;
    is_text = true;
    text_size = (first & 0x0fu) << 8 | byte_at(at_ + 1);
  } else if (first == 0xf0) {
    if (!has(head = 5)) return false;
    is_text = true;
    text_size = number_at<std::uint32_t>(at_ + 1);
  } else if (first == 0xf1) {
    if (!has(head = 3)) return false;
    value = number_at<std::int16_t>(at_ + 1);
  } else if (first == 0xf2) {
    if (!has(head = 4)) return false;
    value = int24_at(at_ + 1);
  } else if (first == 0xf3) {
    if (!has(head = 5)) return false;
    value = number_at<std::int32_t>(at_ + 1);
  } else if (first == 0xf4) {
    if (!has(head = 9)) return false;
    value = number_at<std::int64_t>(at_ + 1);
  } else {
    return fail();
  }
  at_ += head;
  if (is_text) {
    if (!has(text_size)) return false;
    element = bytes_.substr(at_, text_size);
    at_ += text_size;
  } else {
    element = as_text(value);
  }
  return size_backwards(begin);
}

}  // namespace weir::kv::rdb
