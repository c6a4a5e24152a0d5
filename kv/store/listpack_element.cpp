#include "kv/store/listpack_element.hpp"

namespace weir::kv::listpack {

namespace {

unsigned byte_at(Place at, std::size_t i = 0) { return static_cast<unsigned char>(at[i]); }

}  // namespace

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

std::size_t text_size(Place at, Encoding encoding) {
  switch (encoding.head) {
    case 1:
      return byte_at(at) & 0x3f;
    case 2:
      return (byte_at(at) & 0x0f) << 8 | byte_at(at, 1);
    default:
      return little_endian(at + 1, 4);
  }
}

std::size_t long_element_bytes(Place at) {
  const Encoding encoding = encoding_of(byte_at(at));
  return encoding.kind == Kind::text ? encoding.head + text_size(at, encoding) : encoding.head;
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

Element::Element(std::string_view text) {
  if (const auto value = parse_int(text)) {
    set_integer(*value);
  } else {
    set_text(text);
  }
}

Element::Element(std::int64_t value) { set_integer(value); }

Element Element::bytes(std::string_view text) {
  Element element;
  element.set_text(text);
  return element;
}

void Element::set_text(std::string_view text) {
  if (text.empty()) text = {"", 0};  // an address, for memcmp()
  data_ = text;
  if (text.size() < 64) {
    head_[0] = static_cast<char>(text.size() | 0x80);
    head_size_ = 1;
  } else if (text.size() < 4096) {
    head_[0] = static_cast<char>(text.size() >> 8 | 0xe0);
    head_[1] = static_cast<char>(text.size() & 0xff);
    head_size_ = 2;
  } else {
    head_[0] = static_cast<char>(0xf0);
    put_little_endian(head_ + 1, 4, text.size());
    head_size_ = 5;
  }
}

void Element::set_integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  const auto with = [&](unsigned encoding, unsigned bytes) {
    head_[0] = static_cast<char>(encoding);
    put_little_endian(head_ + 1, bytes, bits);
    head_size_ = static_cast<std::uint8_t>(bytes + 1);
  };
  if (value >= 0 && value <= 127) return with(static_cast<unsigned>(value), 0);
  if (value >= -4096 && value <= 4095) {
    head_[0] = static_cast<char>((bits >> 8 & 0x1f) | 0xc0);
    head_[1] = static_cast<char>(bits & 0xff);
    head_size_ = 2;
    return;
  }
  if (value >= -32768 && value <= 32767) return with(0xf1, 2);
  if (value >= -8388608 && value <= 8388607) return with(0xf2, 3);
  if (value >= -2147483648 && value <= 2147483647) return with(0xf3, 4);
  with(0xf4, 8);
}

}  // namespace weir::kv::listpack
