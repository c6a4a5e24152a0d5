// What two ends on two hosts say to each other over RDMA, as bytes. All numbers big-endian.
//
// Private data of rdma_cm:
//   REQ, 56 bytes: "WS", version, log2 of the ring's bytes; address (16) and port (2) of the asker's end,
//   then of the asked one's; digests of the first 16 bytes that the asker sent and received (0: not that far)
//   REJ, 6 bytes: "WS", version, a Refusal, the port to ask instead (0: none)
// Messages on the queue pair, 80 bytes each, zero where nothing is named:
//   hello: kind 1, log2 of the ring's bytes, 2 zero; rkey (4); the ring's address (8); digests of what the
//   end has sent (16 bytes, 64 bytes) and received, 8 each words: kind 2, flags, want, 5 zero; number, heard,
//   produced, changes, ring_from, tcp_from, consumed, changes_seen, 8 each
// Behind hello a WRITE WITH IMMEDIATE says by how much `produced` grew, where no other word changed.
//
// Pure. Nothing that is read here is trusted: reading gives a value whose fields are in their ranges, or
// nothing.
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

// Which connection is meant, as the asker sees it.
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
  std::uint16_t ask_port = 0;  // ask there; 0: nobody here has it
  bool operator==(const FarRefusal&) const = default;
};

inline constexpr std::size_t far_message_bytes = 80;
using FarBytes = std::array<std::byte, far_message_bytes>;

struct FarHello {
  std::uint32_t ring_bytes = 0, rkey = 0;
  std::uint64_t ring_address = 0;
  Conversation conversation;
};

// The words of one end (layout.hpp), as they stand when it says so.
struct FarWords {
  bool asks = false;      // for an answer: words that have heard this number
  bool receives = false;  // it looks at its ring
  bool done = false;      // it will not enter the ring again
  bool gone = false;      // it was closed
  Want want = Want::any;
  std::uint64_t number = 0, heard = 0;  // of messages of words
  std::uint64_t produced = 0, changes = 0, ring_from = 0, tcp_from = 0, consumed = 0, changes_seen = 0;
  bool operator==(const FarWords&) const = default;
};

std::array<std::byte, FarRequest::bytes> bytes_of(const FarRequest& request);
std::array<std::byte, FarRefusal::bytes> bytes_of(const FarRefusal& refusal);
FarBytes bytes_of(const FarHello& hello);
FarBytes bytes_of(const FarWords& words);

// Longer is fine: rdma_cm pads.
std::optional<FarRequest> read_request(std::span<const std::byte> bytes);
std::optional<FarRefusal> read_refusal(std::span<const std::byte> bytes);
std::optional<FarHello> read_hello(std::span<const std::byte> bytes);
std::optional<FarWords> read_words(std::span<const std::byte> bytes);

}  // namespace weir::sockets
