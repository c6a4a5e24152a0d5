// What two stream rsockets tell each other: the greeting in the connection manager's private data, the
// immediate of each RDMA WRITE, and the entries each keeps in the other's memory. It is rsocket(7)'s
// protocol, version 1, so the other side may be rdma-core's.
//
// Nothing that arrives is believed: a parse yields a value only if every field is legal. Values; safe from
// any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::rsocket {

// The upper three bits of an immediate; the lower 29 are its value.
enum class Op : std::uint8_t {
  data = 0,    // value: bytes written behind those before
  credit = 4,  // value: messages the receiver of this may have sent in all (16 bits); look at the buffer list
  iomap = 6,   // value: index of the entry that was written
  control = 7,  // value: a Control
};
enum class Control : std::uint32_t { disconnect = 0, keepalive = 1, shutdown = 2 };

struct Immediate {
  Op op{};
  std::uint32_t value = 0;
  bool operator==(const Immediate&) const = default;
};
inline constexpr std::uint32_t max_immediate_value = (1U << 29) - 1;

std::uint32_t pack(Immediate immediate);
std::optional<Immediate> unpack(std::uint32_t bits);

// A buffer at the other side. In memory it is 16 bytes in the byte order of the side that reads it.
struct RemoteBuffer {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  // The last member: a WRITE makes its last byte visible last, so a length that is there is true.
  std::uint32_t length = 0;
  bool operator==(const RemoteBuffer&) const = default;
};
static_assert(sizeof(RemoteBuffer) == 16);

// A mapped buffer of the other side; 24 bytes in memory, likewise.
struct IomapEntry {
  std::uint64_t offset = 0;
  RemoteBuffer buffer;
  bool operator==(const IomapEntry&) const = default;
};
static_assert(sizeof(IomapEntry) == 24);

RemoteBuffer swapped(const RemoteBuffer& buffer);
IomapEntry swapped(const IomapEntry& entry);

// How many entries we keep for the other side to write the addresses of its receive buffers into.
inline constexpr std::uint32_t buffer_list_entries = 2;
inline constexpr std::uint32_t max_buffer_list_entries = 1024;  // of another implementation's
inline constexpr std::uint32_t max_iomap_entries = 127U << 8;   // what the eight-bit scale can say

struct Greeting {
  std::uint16_t credits = 0;  // messages it takes before it must give more
  bool big_endian = false;
  std::uint32_t iomap_entries = 0;
  RemoteBuffer buffer_list;   // length: entries, not bytes; the iomap table lies behind them
  RemoteBuffer first_buffer;  // where our first bytes go
  bool operator==(const Greeting&) const = default;
};
inline constexpr std::size_t greeting_bytes = 40;

std::array<std::byte, greeting_bytes> encode(const Greeting& greeting);
// Nothing: not a greeting of this version, or one that leaves us nowhere to write. More bytes than a greeting
// has are ignored: private data arrives padded.
std::optional<Greeting> parse_greeting(std::span<const std::byte> bytes);

// A table's size in eight bits: exact up to 128, in steps of 256 above. A size between steps is cut to one.
std::uint8_t to_scale(std::uint32_t entries);
std::uint32_t from_scale(std::uint8_t scale);

}  // namespace weir::rsocket
