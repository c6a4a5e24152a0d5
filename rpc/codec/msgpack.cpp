#include "rpc/codec/msgpack.hpp"

#include <array>

namespace weir::rpc {

namespace {
template <class Integer>
Integer swapped(Integer value) {
  if constexpr (sizeof value == 1)
    return value;
  else
    return std::byteswap(value);
}
}  // namespace

template <class Integer>
void MsgpackWriter::tagged(std::uint8_t tag, Integer value) {
  std::byte* to = out_.grow(1 + sizeof value);
  *to = std::byte{tag};
  value = swapped(value);
  std::memcpy(to + 1, &value, sizeof value);
}
template void MsgpackWriter::tagged(std::uint8_t, std::uint32_t);
template void MsgpackWriter::tagged(std::uint8_t, std::uint64_t);

void MsgpackWriter::wide_unsigned(std::uint64_t value) {
  if (value <= 0xff) return tagged(0xcc, static_cast<std::uint8_t>(value));
  if (value <= 0xffff) return tagged(0xcd, static_cast<std::uint16_t>(value));
  if (value <= 0xffffffff) return tagged(0xce, static_cast<std::uint32_t>(value));
  tagged(0xcf, value);
}

void MsgpackWriter::wide_negative(std::int64_t value) {
  if (value >= INT8_MIN) return tagged(0xd0, static_cast<std::uint8_t>(value));
  if (value >= INT16_MIN) return tagged(0xd1, static_cast<std::uint16_t>(value));
  if (value >= INT32_MIN) return tagged(0xd2, static_cast<std::uint32_t>(value));
  tagged(0xd3, static_cast<std::uint64_t>(value));
}

void MsgpackWriter::sized(std::size_t size, std::uint8_t tag8, std::uint8_t tag16, std::uint8_t tag32) {
  if (tag8 != 0 && size <= 0xff) return tagged(tag8, static_cast<std::uint8_t>(size));
  if (size <= 0xffff) return tagged(tag16, static_cast<std::uint16_t>(size));
  tagged(tag32, static_cast<std::uint32_t>(size));
}

void MsgpackWriter::text(std::string_view value) {
  if (value.size() < 32)
    byte(static_cast<std::uint8_t>(0xa0 | value.size()));
  else
    sized(value.size(), 0xd9, 0xda, 0xdb);
  place_.append_or_refer(as_bytes(value));
}

void MsgpackWriter::binary(std::span<const std::byte> value) {
  sized(value.size(), 0xc4, 0xc5, 0xc6);
  place_.append_or_refer(value);
}

void MsgpackWriter::array(std::size_t elements) {
  if (elements < 16) return byte(static_cast<std::uint8_t>(0x90 | elements));
  sized(elements, 0, 0xdc, 0xdd);
}

void MsgpackWriter::map(std::size_t pairs) {
  if (pairs < 16) return byte(static_cast<std::uint8_t>(0x80 | pairs));
  sized(pairs, 0, 0xde, 0xdf);
}

std::string_view name_of(MsgpackType type) {
  constexpr std::array<std::string_view, 10> names = {
      "the end", "nil",    "a boolean", "an integer", "a real number",
      "text",    "binary", "an array",  "a map",      "an extension"};
  return names[static_cast<std::size_t>(type)];
}

bool MsgpackReader::fail(std::string_view why) {
  if (!failed_) why_ = why;
  failed_ = true;
  at_ = end_;
  return false;
}

bool MsgpackReader::inside(std::string_view where) {
  if (failed_) why_ = std::string(where) + ": " + why_;
  return false;
}

MsgpackType MsgpackReader::peek() const {
  if (at_ == end_) return MsgpackType::end;
  const std::uint8_t t = tag();
  if (t <= 0x7f || t >= 0xe0) return MsgpackType::integer;
  if (t <= 0x8f) return MsgpackType::map;
  if (t <= 0x9f) return MsgpackType::array;
  if (t <= 0xbf) return MsgpackType::text;
  using enum MsgpackType;
  constexpr std::array<MsgpackType, 32> rest = {
      nil,       extension, boolean, boolean, binary,    binary,    binary,    extension,
      extension, extension, real,    real,    integer,   integer,   integer,   integer,
      integer,   integer,   integer, integer, extension, extension, extension, extension,
      extension, text,      text,    text,    array,     array,     map,       map};
  return rest[t - 0xc0u];
}

bool MsgpackReader::beyond_room() {
  too_large_ = !failed_;
  return fail("the values would take more memory than this end gives one message");
}

bool MsgpackReader::expected(std::string_view what) {
  return fail(std::string("expected ") + std::string(what) + ", found " + std::string(name_of(peek())));
}

bool MsgpackReader::big_endian(unsigned bytes, std::uint64_t& value) {
  if (remaining() < bytes) return fail("cut off in the middle of a value");
  value = 0;
  for (unsigned i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint8_t>(at_[i]);
  at_ += bytes;
  return true;
}

bool MsgpackReader::block(std::uint64_t bytes, std::span<const std::byte>& value) {
  if (bytes > remaining()) return fail("cut off in the middle of a value");
  value = {at_, static_cast<std::size_t>(bytes)};
  at_ += bytes;
  return true;
}

bool MsgpackReader::take_nil() {
  if (peek() != MsgpackType::nil) return false;
  ++at_;
  return true;
}

bool MsgpackReader::boolean(bool& value) {
  if (peek() != MsgpackType::boolean) return expected("a boolean");
  value = tag() == 0xc3;
  ++at_;
  return true;
}

bool MsgpackReader::number(Number& value) {
  const MsgpackType type = peek();
  if (type != MsgpackType::integer && type != MsgpackType::real) return expected("a number");
  const std::uint8_t t = tag();
  ++at_;
  if (t <= 0x7f) {
    value.bits = t;
    return true;
  }
  if (t >= 0xe0) {
    value = {Number::Kind::negative, static_cast<std::uint64_t>(static_cast<std::int8_t>(t)), 0};
    return true;
  }
  if (type == MsgpackType::real) {
    value.kind = Number::Kind::real;
    if (!big_endian(t == 0xca ? 4 : 8, value.bits)) return false;
    value.as_real = t == 0xca ? std::bit_cast<float>(static_cast<std::uint32_t>(value.bits))
                              : std::bit_cast<double>(value.bits);
    return true;
  }
  const unsigned bytes = 1u << (t & 3);  // cc..cf unsigned, d0..d3 signed
  if (!big_endian(bytes, value.bits)) return false;
  const unsigned unused = 64 - 8 * bytes;
  if (t >= 0xd0) {
    const auto extended = static_cast<std::int64_t>(value.bits << unused) >> unused;
    value.bits = static_cast<std::uint64_t>(extended);
    if (extended < 0) value.kind = Number::Kind::negative;
  }
  return true;
}

bool MsgpackReader::unsigned_integer(std::uint64_t& value) {
  if (peek() != MsgpackType::integer) return expected("an integer");
  Number read;
  if (!number(read)) return false;
  if (read.kind == Number::Kind::negative)
    return fail("expected an integer of 0 or more, found a negative one");
  value = read.bits;
  return true;
}

bool MsgpackReader::signed_integer(std::int64_t& value) {
  if (peek() != MsgpackType::integer) return expected("an integer");
  Number read;
  if (!number(read)) return false;
  if (read.kind == Number::Kind::positive && read.bits > INT64_MAX)
    return fail("an integer beyond 64 bits with a sign");
  value = static_cast<std::int64_t>(read.bits);
  return true;
}

bool MsgpackReader::real(double& value) {
  Number read;
  if (!number(read)) return false;
  if (read.kind == Number::Kind::real)
    value = read.as_real;
  else if (read.kind == Number::Kind::negative)
    value = static_cast<double>(static_cast<std::int64_t>(read.bits));
  else
    value = static_cast<double>(read.bits);
  return true;
}

bool MsgpackReader::length(std::uint8_t t, std::uint8_t tag8, std::uint64_t& size) {
  return big_endian(1u << (t - tag8), size);
}

bool MsgpackReader::text_or_binary(bool text_only, std::span<const std::byte>& value) {
  const MsgpackType type = peek();
  if (type != MsgpackType::text && (text_only || type != MsgpackType::binary))
    return expected(text_only ? "text" : "binary");
  const std::uint8_t t = tag();
  ++at_;
  std::uint64_t size = t & 0x1f;
  if (t >= 0xc0 && !length(t, type == MsgpackType::text ? 0xd9 : 0xc4, size)) return false;
  return block(size, value);
}

bool MsgpackReader::text(std::string_view& value) {
  std::span<const std::byte> bytes;
  if (!text_or_binary(true, bytes)) return false;
  value = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  return true;
}

bool MsgpackReader::binary(std::span<const std::byte>& value) { return text_or_binary(false, value); }

bool MsgpackReader::count(MsgpackType type, std::size_t& elements) {
  if (peek() != type) return expected(name_of(type));
  const std::uint8_t t = tag();
  ++at_;
  std::uint64_t size = t & 0x0f;
  if (t >= 0xc0 && !big_endian(t & 1 ? 4 : 2, size)) return false;  // dc dd, de df
  if (size > remaining() || (type == MsgpackType::map && size > remaining() / 2))
    return fail("cut off in the middle of a value");
  elements = static_cast<std::size_t>(size);
  return true;
}

bool MsgpackReader::array(std::size_t& elements) { return count(MsgpackType::array, elements); }
bool MsgpackReader::map(std::size_t& pairs) { return count(MsgpackType::map, pairs); }

bool MsgpackReader::skip() {
  // Counted, not recursive: each container replaces itself by its elements.
  for (std::uint64_t left = 1; left > 0; --left) {
    std::size_t inside = 0;
    std::span<const std::byte> bytes;
    Number ignored;
    std::uint64_t size = 0;
    switch (peek()) {
      case MsgpackType::end:
        return fail("cut off in the middle of a value");
      case MsgpackType::nil:
      case MsgpackType::boolean:
        ++at_;
        break;
      case MsgpackType::integer:
      case MsgpackType::real:
        if (!number(ignored)) return false;
        break;
      case MsgpackType::text:
      case MsgpackType::binary:
        if (!text_or_binary(false, bytes)) return false;
        break;
      case MsgpackType::array:
        if (!array(inside)) return false;
        left += inside;
        break;
      case MsgpackType::map:
        if (!map(inside)) return false;
        left += 2 * std::uint64_t{inside};
        break;
      case MsgpackType::extension: {
        const std::uint8_t t = tag();
        ++at_;
        if (t == 0xc1) return fail("a byte that MessagePack never uses");
        if (t >= 0xd4)
          size = std::uint64_t{1} << (t - 0xd4);
        else if (!length(t, 0xc7, size))
          return false;
        if (!block(size + 1, bytes)) return false;
        break;
      }
    }
  }
  return true;
}

}  // namespace weir::rpc
