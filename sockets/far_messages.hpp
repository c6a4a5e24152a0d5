// The messages that two ends on two hosts exchange over RDMA, as bytes. All numbers are big-endian.
//
// Private data of rdma_cm:
//   REQ, 56 bytes: "WS", version, log2 of the ring's bytes; address (16) and port (2) of the asker's end,
//   then of the asked one's; digests of the first 16 bytes that the asker sent and received (0: not that far)
//   REJ, 6 bytes: "WS", version, a Refusal, the port to ask instead (0: none)
// Messages on the queue pair, 80 bytes each; unnamed bytes are zero:
//   hello: kind 1, log2 of the ring's bytes, 2 zero; rkey (4); the ring's address (8); digests of what
//   the end has sent (16 bytes, 64 bytes) and received, 8 each
//   words: kind 2, flags, want, 5 zero; then 8 each: number, heard, produced, changes, ring_from,
//   tcp_from, consumed, changes_seen
// On the TCP connection, if the RDMA packets' path is lost (transfer.cpp):
//   return, 48 bytes: "WEIRBACK"; how many bytes of the stream have arrived (8); digests as in hello
//
// After hello a WRITE WITH IMMEDIATE carries the increase of `produced` if no other word changed.
//
// Pure. Nothing read is trusted: a reader returns a value whose fields are in their ranges, or nullopt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sockets/beginning.hpp"
#include "sockets/carrier.hpp"

namespace weir::sockets {

inline constexpr std::uint32_t least_ring_bytes = 4096, most_ring_bytes = 1 << 24;

// The connection that is meant, as the asker sees it.
struct FarRequest {
  static constexpr std::size_t bytes = 56;
  struct End {
    std::array<std::uint8_t, 16> address{};
    std::uint16_t port = 0;
    bool operator==(const End&) const = default;
  };
  std::uint32_t ring_bytes = 0;
  End asker, asked;
  std::uint64_t sent_16 = 0, received_16 = 0;
  bool operator==(const FarRequest&) const = default;
};

struct FarRefusal {
  static constexpr std::size_t bytes = 6;
  std::uint16_t ask_port = 0;  // ask this port; 0: nobody here has the connection
  bool operator==(const FarRefusal&) const = default;
};

inline constexpr std::size_t far_message_bytes = 80;
using FarBytes = std::array<std::byte, far_message_bytes>;

struct FarHello {
  std::uint32_t ring_bytes = 0, rkey = 0;
  std::uint64_t ring_address = 0;
  Conversation conversation;
};

// The words of one end (layout.hpp) at the moment of sending.
struct FarWords {
  bool asks = false;      // asks for an answer: words whose `heard` reaches this number
  bool receives = false;  // the end looks at its ring
  bool done = false;      // the end will not enter the ring again
  bool gone = false;      // the end was closed
  Want want = Want::any;
  std::uint64_t number = 0, heard = 0;  // numbers of messages with words
  std::uint64_t produced = 0, changes = 0, ring_from = 0, tcp_from = 0, consumed = 0, changes_seen = 0;
  bool operator==(const FarWords&) const = default;
};

// What has arrived of the peer's direction; the rest must come by TCP, behind the peer's own such message.
struct FarReturn {
  static constexpr std::size_t bytes = 48;
  std::uint64_t arrived = 0;
  Conversation conversation;
};

std::array<std::byte, FarRequest::bytes> bytes_of(const FarRequest& request);
std::array<std::byte, FarRefusal::bytes> bytes_of(const FarRefusal& refusal);
FarBytes bytes_of(const FarHello& hello);
FarBytes bytes_of(const FarWords& words);
std::array<std::byte, FarReturn::bytes> bytes_of(const FarReturn& message);

// Extra bytes at the end are fine: rdma_cm pads.
std::optional<FarRequest> read_request(std::span<const std::byte> bytes);
std::optional<FarRefusal> read_refusal(std::span<const std::byte> bytes);
std::optional<FarHello> read_hello(std::span<const std::byte> bytes);
std::optional<FarWords> read_words(std::span<const std::byte> bytes);
std::optional<FarReturn> read_return(std::span<const std::byte> bytes);

}  // namespace weir::sockets
