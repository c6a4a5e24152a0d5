#include "verbs/rsocket/stream_wire.hpp"

#include <algorithm>
#include <concepts>

namespace weir::rsocket {
namespace {

constexpr std::uint8_t version = 1;
constexpr std::uint8_t flag_big_endian = 1;
constexpr std::uint8_t flag_has_iomap = 2;
constexpr unsigned op_shift = 29;
constexpr std::uint32_t exact_scale_limit = 128;

// The greeting is big-endian whatever its sender is.
template <std::unsigned_integral T>
void put(std::span<std::byte> at, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    at[i] = static_cast<std::byte>(value >> (8 * (sizeof value - 1 - i)));
  }
}
template <std::unsigned_integral T>
T get(std::span<const std::byte> at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<T>((std::uint64_t{value} << 8) | std::to_integer<std::uint8_t>(at[i]));
  }
  return value;
}

void put_buffer(std::span<std::byte> at, const RemoteBuffer& buffer) {
  put(at, buffer.address);
  put(at.subspan(8), buffer.key);
  put(at.subspan(12), buffer.length);
}
RemoteBuffer get_buffer(std::span<const std::byte> at) {
  return {get<std::uint64_t>(at), get<std::uint32_t>(at.subspan(8)), get<std::uint32_t>(at.subspan(12))};
}

std::uint32_t swap_bytes(std::uint32_t value) { return __builtin_bswap32(value); }
std::uint64_t swap_bytes(std::uint64_t value) { return __builtin_bswap64(value); }

}  // namespace

std::uint32_t pack(Immediate immediate) {
  return (static_cast<std::uint32_t>(immediate.op) << op_shift) | (immediate.value & max_immediate_value);
}

std::optional<Immediate> unpack(std::uint32_t bits) {
  const Immediate immediate{static_cast<Op>(bits >> op_shift), bits & max_immediate_value};
  switch (immediate.op) {
    case Op::data:
    case Op::credit:
    case Op::iomap:
    case Op::control:
      return immediate;
  }
  return std::nullopt;
}

RemoteBuffer swapped(const RemoteBuffer& buffer) {
  return {swap_bytes(buffer.address), swap_bytes(buffer.key), swap_bytes(buffer.length)};
}
IomapEntry swapped(const IomapEntry& entry) { return {swap_bytes(entry.offset), swapped(entry.buffer)}; }

std::array<std::byte, greeting_bytes> encode(const Greeting& greeting) {
  std::array<std::byte, greeting_bytes> bytes{};
  const std::span<std::byte> all(bytes);
  put(all, version);
  put(all.subspan(1),
      static_cast<std::uint8_t>(flag_has_iomap | (greeting.big_endian ? flag_big_endian : 0)));
  put(all.subspan(2), greeting.credits);
  put(all.subspan(7), to_scale(greeting.iomap_entries));
  put_buffer(all.subspan(8), greeting.buffer_list);
  put_buffer(all.subspan(24), greeting.first_buffer);
  return bytes;
}

std::optional<Greeting> parse_greeting(std::span<const std::byte> bytes) {
  if (bytes.size() < greeting_bytes || get<std::uint8_t>(bytes) != version) return std::nullopt;
  const auto flags = get<std::uint8_t>(bytes.subspan(1));
  Greeting greeting;
  greeting.big_endian = (flags & flag_big_endian) != 0;
  greeting.credits = get<std::uint16_t>(bytes.subspan(2));
  if ((flags & flag_has_iomap) != 0) greeting.iomap_entries = from_scale(get<std::uint8_t>(bytes.subspan(7)));
  greeting.buffer_list = get_buffer(bytes.subspan(8));
  greeting.first_buffer = get_buffer(bytes.subspan(24));
  const bool usable = greeting.credits > 0 && greeting.buffer_list.length > 0 &&
                      greeting.buffer_list.length <= max_buffer_list_entries &&
                      greeting.first_buffer.length > 0;
  if (!usable) return std::nullopt;
  return greeting;
}

std::uint8_t to_scale(std::uint32_t entries) {
  if (entries <= exact_scale_limit) return static_cast<std::uint8_t>(entries);
  return static_cast<std::uint8_t>(exact_scale_limit | (std::min(entries, max_iomap_entries) >> 8));
}

std::uint32_t from_scale(std::uint8_t scale) {
  if (scale <= exact_scale_limit) return scale;
  return (scale & (exact_scale_limit - 1)) << 8;
}

}  // namespace weir::rsocket
