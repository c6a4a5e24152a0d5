#include "kv/rdb/encoded.hpp"

#include <lzf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "kv/rdb/checksum.hpp"
#include "kv/text/heap.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::rdb {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are put as they lie in memory");

// Redis does not compress shorter texts, and it would not help.
constexpr std::size_t shortest_compressed = 21;
constexpr std::size_t longest_integer = 11;

template <class Number>
void append(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

void append_length(std::string& out, std::uint64_t length) {
  if (length < 1u << 6) {
    out.push_back(static_cast<char>(length_6_bits << 6 | length));
  } else if (length < 1u << 14) {
    out.push_back(static_cast<char>(length_14_bits << 6 | length >> 8));
    out.push_back(static_cast<char>(length & 0xff));
  } else if (length <= std::numeric_limits<std::uint32_t>::max()) {
    out.push_back(static_cast<char>(length_32_bits));
    append(out, __builtin_bswap32(static_cast<std::uint32_t>(length)));
  } else {
    out.push_back(static_cast<char>(length_64_bits));
    append(out, __builtin_bswap64(length));
  }
}

void append_encoding(std::string& out, std::uint8_t how) {
  out.push_back(static_cast<char>(text_encoded << 6 | how));
}

bool append_integer(std::string& out, std::string_view text) {
  if (text.empty() || text.size() > longest_integer) return false;
  const auto number = parse_int(text);
  if (!number) return false;
  if (*number == static_cast<std::int8_t>(*number)) {
    append_encoding(out, text_int8);
    append(out, static_cast<std::int8_t>(*number));
  } else if (*number == static_cast<std::int16_t>(*number)) {
    append_encoding(out, text_int16);
    append(out, static_cast<std::int16_t>(*number));
  } else if (*number == static_cast<std::int32_t>(*number)) {
    append_encoding(out, text_int32);
    append(out, static_cast<std::int32_t>(*number));
  } else {
    return false;
  }
  return true;
}

// Returns false if the text would not get shorter.
bool append_compressed(std::string& out, std::string_view text) {
  // liblzf uses 32-bit sizes.
  if (text.size() > std::numeric_limits<std::uint32_t>::max() / 2) return false;
  std::string packed(text.size() - 4, '\0');
  const unsigned size = lzf_compress(text.data(), static_cast<unsigned>(text.size()), packed.data(),
                                     static_cast<unsigned>(packed.size()));
  if (size == 0) return false;
  append_encoding(out, text_lzf);
  append_length(out, size);
  append_length(out, text.size());
  out.append(packed, 0, size);
  return true;
}

}  // namespace

void Encoded::put_length(std::uint64_t length) { append_length(bytes_, length); }

void Encoded::put_text(std::string_view text) {
  if (append_integer(bytes_, text)) return;
  if (text.size() < shortest_compressed) {
    put_length(text.size());
  } else {
    texts_.push_back({bytes_.size(), text.size()});
  }
  bytes_.append(text);
}

void Encoded::put_double(double value) { append(bytes_, value); }
void Encoded::put_milliseconds(std::int64_t ms) { append(bytes_, ms); }

void Encoded::put_aux(std::string_view name, std::string_view value) {
  put_opcode(Opcode::aux);
  put_text(name);
  put_text(value);
}

std::size_t Encoded::memory() const {
  return heap_size(bytes_) + heap_size(static_cast<const void*>(texts_.data()));
}

std::size_t Encoded::room_for_all() const {
  constexpr std::size_t longest_length = 9;
  return bytes_.size() + texts_.size() * longest_length;
}

std::size_t Encoded::memory_to_finish(Compression compression) const {
  std::size_t packed = 0;
  if (compression != Compression::none) {
    for (const Text& text : texts_) packed = std::max(packed, text.size);
  }
  return room_for_all() + packed;
}

void Encoded::finish(Compression compression, std::string& out) const {
  out.reserve(out.size() + room_for_all());
  const std::string_view all = bytes_;
  std::size_t done = 0;
  for (const Text& text : texts_) {
    out.append(all.substr(done, text.offset - done));
    const std::string_view words = all.substr(text.offset, text.size);
    if (compression == Compression::none || !append_compressed(out, words)) {
      append_length(out, words.size());
      out.append(words);
    }
    done = text.offset + text.size;
  }
  out.append(all.substr(done));
}

namespace {

void put_name_and_version(Encoded& out, std::string_view name, int version) {
  const std::string number = std::to_string(version);
  out.put_raw(name);
  out.put_raw(std::string(header_size - name.size() - number.size(), '0') + number);
}

}  // namespace

void put_header(Encoded& out, int version) { put_name_and_version(out, magic, version); }
void put_header_of_valkey(Encoded& out) { put_name_and_version(out, magic_of_valkey, first_of_valkey); }

std::string end_of_file(std::uint64_t sum, bool with_checksum) {
  std::string out(1, static_cast<char>(Opcode::end));
  append(out, with_checksum ? checksum(sum, out) : std::uint64_t{0});
  return out;
}

}  // namespace weir::kv::rdb
