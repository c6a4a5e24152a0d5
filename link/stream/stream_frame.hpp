// What goes over a TCP stream between two hosts: frames, each behind a header with its length. First the two
// ends meet: a greeting of the end that dialled, a challenge of the other, a proof. Then runs of packets,
// from the BTH to the ICRC, as they would leave by UDP.
//
// The peer is a stranger: only these have a representation, and every field is checked. The addresses are
// those that the packets' ICRCs cover, whatever a router on the way makes of the stream's own. Numbers are in
// network order. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hash/siphash.hpp"
#include "link/same_host.hpp"
#include "link/udp/udp_route.hpp"

namespace weir::link {

inline constexpr std::size_t frame_header_bytes = 12;
inline constexpr std::size_t max_streamed_packets = 64;
inline constexpr std::size_t max_streamed_bytes = 65'507;  // of a run, without the header

// An end that hears nothing by UDP asks whether the other does.
enum class FrameKind : std::uint8_t {
  greeting = 1,
  challenge = 2,
  proof = 3,
  run = 4,
  question = 5,
  answer = 6
};

// Packets that lie behind each other, BTH to ICRC: all of `segment` bytes, the last may be shorter.
struct StreamedRun {
  std::span<const std::byte> bytes;
  std::uint16_t segment = 0;
  std::uint16_t first_id = 0;  // the IPv4 ID of the first, which its ICRC covers; the next count up
  std::uint8_t traffic_class = 0, hop_limit = 0;
};
std::array<std::byte, frame_header_bytes> encode_run_frame(const StreamedRun& run);

// Which process a stream is for: a slot, or that which listens for a service (the lower half of its ID).
struct StreamTarget {
  Slot slot = 0;
  std::uint32_t service = 0;
  auto operator<=>(const StreamTarget&) const = default;
};

using StreamNonce = std::array<std::byte, 16>;

struct StreamGreeting {
  IpAddress source{}, destination{};  // of the packets of the end that dials
  Slot slot = 0;                      // of the process that dials
  StreamTarget target;
  StreamNonce nonce{};
};
struct StreamChallenge {
  Slot slot = 0;  // of the process that answers
  StreamNonce nonce{};
  std::uint64_t proof = 0;
};
std::vector<std::byte> encode_frame(const StreamGreeting& greeting);
std::vector<std::byte> encode_frame(const StreamChallenge& challenge);
std::vector<std::byte> encode_proof(std::uint64_t proof);
std::vector<std::byte> encode_question();
std::vector<std::byte> encode_answer(bool hears);

// What shows that an end has the key: nobody makes it for another stream, as both chose a nonce for this one.
// 0 without a key.
enum class StreamEnd : std::uint8_t { dials, answers };
std::uint64_t proof_of(const hash::SipKey* key, StreamEnd of, const StreamGreeting& greeting, Slot answers,
                       const StreamNonce& challenge);

struct Frame {
  FrameKind kind{};
  StreamedRun run;                  // of a run; otherwise:
  std::span<const std::byte> body;  // a view into what was parsed
  std::size_t bytes = 0;            // the whole, with its header
};
enum class Parsed : std::uint8_t { whole, partial, broken };
// The first frame of what has arrived.
Parsed parse_frame(std::span<const std::byte> arrived, Frame& frame);
std::optional<StreamGreeting> parse_greeting_body(std::span<const std::byte> body);
std::optional<StreamChallenge> parse_challenge_body(std::span<const std::byte> body);
std::optional<std::uint64_t> parse_proof_body(std::span<const std::byte> body);
std::optional<bool> parse_answer_body(std::span<const std::byte> body);

}  // namespace weir::link
