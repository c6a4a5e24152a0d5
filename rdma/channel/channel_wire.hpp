// What a channel puts on the wire: greeting, immediates, records (docs/decisions/0008). All big-endian.
//
// Greeting, in the connection manager's private data of both sides, 24 bytes:
//   magic "WCHN" | version u8 | rendezvous_depth u8 | window u16 | block_bytes u32 | max_message u32 | 8 zero
// Immediate, with every SEND: kind u4 | fetched u12 | credits u16
//   kind 1 data: the SEND carries records.   kind 2 ack: it carries nothing.
//   fetched: offers of the receiver's that the sender has fetched since its last immediate
//   credits: data SENDs that the receiver may send more
// A data SEND is a row of records, each padded to 8 bytes: type u8 | 3 zero | length u32 | body of `length`
//   1 message   the body
//   2 first     total u32 | 4 zero | the body's first bytes; alone in its SEND
//   3 more      the next bytes of the message begun last; alone in its SEND
//   4 offer     address u64 | length u32 | rkey u32: a message to be fetched with READ
//   5 part      address u64 | length u32 | rkey u32 | total u32 | offset u32: of a message of `total`, in
//               order; no other message begins before the last; at least min_part_bytes, but for the last
// Parsers take bytes from a peer and yield only what is legal by itself. Pure functions; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <variant>

#include "rdma/error.hpp"

namespace weir::rdma::channel_wire {

inline constexpr std::uint8_t version = 2;
inline constexpr std::size_t greeting_bytes = 24;
inline constexpr std::size_t record_header_bytes = 8;
inline constexpr std::size_t first_header_bytes = 16;
inline constexpr std::size_t offer_bytes = 16;
inline constexpr std::size_t part_bytes = 24;
inline constexpr std::uint32_t min_block_bytes = 1 << 10;
inline constexpr std::uint32_t max_block_bytes = 1 << 20;
inline constexpr std::uint32_t max_message_bytes = 1 << 30;
inline constexpr std::uint8_t max_rendezvous_depth = 16;
// Of a message that is offered in parts, each but the last: what is fetched of it is remembered part by part.
inline constexpr std::uint32_t min_part_bytes = 4 << 10;
inline constexpr std::size_t max_inline_bytes = 1024;

// Receives that no data SEND may take, so that an acknowledgement always finds one. An explicit one carries
// half a window (two can be unread, as credits in flight never exceed the window), or what there is for a
// sender that has none left (one), or that an offer was fetched (one an offer).
constexpr std::uint32_t reserved_receives(std::uint8_t rendezvous_depth) { return 3u + rendezvous_depth; }

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

struct Greeting {
  std::uint8_t rendezvous_depth = 0;  // how many offers the peer may have outstanding; 0: none
  std::uint16_t window = 0;           // data SENDs the peer may have outstanding
  std::uint32_t block_bytes = 0;      // of a SEND at most
  std::uint32_t max_message = 0;
  friend bool operator==(const Greeting&, const Greeting&) = default;
};
std::array<std::byte, greeting_bytes> encode(const Greeting&);
// Transports pad with zeros, so more bytes than a greeting are fine. Errc::not_a_channel.
std::expected<Greeting, Errc> parse_greeting(std::span<const std::byte>);

struct Immediate {
  enum class Kind : std::uint8_t { data = 1, ack = 2 };
  static constexpr std::uint32_t max_fetched = 0xfff;
  Kind kind = Kind::data;
  std::uint16_t fetched = 0;
  std::uint16_t credits = 0;
  friend bool operator==(const Immediate&, const Immediate&) = default;
};
std::uint32_t encode(const Immediate&);                             // host order
std::expected<Immediate, Errc> parse_immediate(std::uint32_t raw);  // Errc::bad_immediate

struct WholeMessage {
  std::span<const std::byte> body;
};
struct FirstPart {
  std::uint32_t total = 0;  // more than body has
  std::span<const std::byte> body;
};
struct NextPart {
  std::span<const std::byte> body;  // not empty
};
struct Offer {
  std::uint64_t address = 0;
  std::uint32_t length = 0;  // not 0; [address, address + length) does not wrap
  std::uint32_t rkey = 0;
  // Of the message; a part of one is where these are not its length and 0. [offset, offset + length) is in
  // it.
  std::uint32_t total = 0;
  std::uint32_t offset = 0;

  bool whole() const { return length == total; }
  bool last() const { return offset + length == total; }
};
using Record = std::variant<WholeMessage, FirstPart, NextPart, Offer>;

// Walks the records of one data SEND. Errc::bad_frame, after which it is not to be used.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> frame) : left_(frame) {}
  bool done() const { return left_.empty(); }
  std::expected<Record, Errc> next();

 private:
  std::span<const std::byte> left_;
  bool begun_ = false;
};

// Into the front of `at`, which has room.
void put_message_header(std::byte* at, std::uint32_t length);
void put_first_header(std::byte* at, std::uint32_t total, std::uint32_t length);
void put_more_header(std::byte* at, std::uint32_t length);
std::size_t offer_record_bytes(const Offer& offer);
void put_offer(std::byte* at, const Offer& offer);  // offer_record_bytes()

}  // namespace weir::rdma::channel_wire
