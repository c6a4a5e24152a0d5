#include "link/stream/stream_frame.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "wire/byte_order.hpp"
#include "wire/icrc.hpp"

namespace weir::link {
namespace {

constexpr std::uint64_t greeting_magic = 0x57454952'53545231;  // "WEIRSTR1"
constexpr std::size_t greeting_body = 8 + 16 + 16 + 2 + 2 + 4 + 16;
constexpr std::size_t challenge_body = 2 + 16 + 8;
constexpr std::size_t proof_body = 8, question_body = 1, answer_body = 1;
constexpr std::size_t bth_bytes = 12;
constexpr std::size_t shortest_packet = bth_bytes + wire::icrc_bytes;

std::vector<std::byte> begin_frame(FrameKind kind, std::size_t body) {
  std::vector<std::byte> frame;
  frame.reserve(frame_header_bytes + body);
  wire::put(frame, static_cast<std::uint8_t>(kind));
  wire::put(frame, 0, 7);
  wire::put(frame, static_cast<std::uint32_t>(body));
  return frame;
}

void put_address(std::vector<std::byte>& to, const IpAddress& address) {
  wire::put(to, std::as_bytes(std::span(address)));
}

// The reader has that many bytes left.
template <class T>
void take_into(wire::Reader& from, T& into) {
  std::memcpy(into.data(), from.take(into.size()).data(), into.size());
}

bool is_slot(Slot slot) { return slot != 0 && slot < max_slots; }

bool is_run(const StreamedRun& run) {
  if (run.segment < shortest_packet || run.bytes.empty() || run.bytes.size() > max_streamed_bytes)
    return false;
  const std::size_t packets = (run.bytes.size() + run.segment - 1) / run.segment;
  return run.first_id + packets <= max_streamed_packets;
}

std::size_t longest_body(FrameKind kind) {
  switch (kind) {
    case FrameKind::greeting:
      return greeting_body;
    case FrameKind::challenge:
      return challenge_body;
    case FrameKind::proof:
      return proof_body;
    case FrameKind::question:
      return question_body;
    case FrameKind::answer:
      return answer_body;
    case FrameKind::run:
      return max_streamed_bytes;
  }
  return 0;  // unknown
}

}  // namespace

std::array<std::byte, frame_header_bytes> encode_run_frame(const StreamedRun& run) {
  std::array<std::byte, frame_header_bytes> header{};
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      header[at + i] = static_cast<std::byte>(value >> (8 * (count - 1 - i)));
  };
  put(0, static_cast<std::uint8_t>(FrameKind::run), 1);
  put(1, run.traffic_class, 1);
  put(2, run.hop_limit, 1);
  put(4, run.segment, 2);
  put(6, run.first_id, 2);
  put(8, run.bytes.size(), 4);
  return header;
}

std::vector<std::byte> encode_frame(const StreamGreeting& greeting) {
  auto frame = begin_frame(FrameKind::greeting, greeting_body);
  wire::put(frame, greeting_magic);
  put_address(frame, greeting.source);
  put_address(frame, greeting.destination);
  wire::put(frame, greeting.slot);
  wire::put(frame, greeting.target.slot);
  wire::put(frame, greeting.target.service);
  wire::put(frame, greeting.nonce);
  return frame;
}

std::vector<std::byte> encode_frame(const StreamChallenge& challenge) {
  auto frame = begin_frame(FrameKind::challenge, challenge_body);
  wire::put(frame, challenge.slot);
  wire::put(frame, challenge.nonce);
  wire::put(frame, challenge.proof);
  return frame;
}

std::vector<std::byte> encode_proof(std::uint64_t proof) {
  auto frame = begin_frame(FrameKind::proof, proof_body);
  wire::put(frame, proof);
  return frame;
}

std::vector<std::byte> encode_question() {
  auto frame = begin_frame(FrameKind::question, question_body);
  frame.push_back(std::byte{0});
  return frame;
}

std::vector<std::byte> encode_answer(bool hears) {
  auto frame = begin_frame(FrameKind::answer, answer_body);
  frame.push_back(static_cast<std::byte>(hears));
  return frame;
}

std::uint64_t proof_of(const hash::SipKey* key, StreamEnd of, const StreamGreeting& greeting, Slot answers,
                       const StreamNonce& challenge) {
  if (key == nullptr) return 0;
  std::vector<std::byte> covered;
  wire::put(covered, static_cast<std::uint8_t>(of));
  wire::put(covered, encode_frame(greeting));
  wire::put(covered, answers);
  wire::put(covered, challenge);
  return hash::finish_with(hash::SipMacState(*key),
                           std::string_view(reinterpret_cast<const char*>(covered.data()), covered.size()));
}

Parsed parse_frame(std::span<const std::byte> arrived, Frame& frame) {
  if (arrived.size() < frame_header_bytes) return Parsed::partial;
  wire::Reader header(arrived.first(frame_header_bytes));
  frame.kind = static_cast<FrameKind>(header.number<std::uint8_t>());
  frame.run.traffic_class = header.number<std::uint8_t>();
  frame.run.hop_limit = header.number<std::uint8_t>();
  const auto zero = header.number<std::uint8_t>();
  frame.run.segment = header.number<std::uint16_t>();
  frame.run.first_id = header.number<std::uint16_t>();
  const auto length = header.number<std::uint32_t>();
  const std::size_t longest = longest_body(frame.kind);
  const bool is_of_packets = frame.kind == FrameKind::run;
  if (zero != 0 || length == 0 || length > longest || (!is_of_packets && length != longest))
    return Parsed::broken;
  const bool says_more = frame.run.traffic_class != 0 || frame.run.hop_limit != 0 || frame.run.segment != 0 ||
                         frame.run.first_id != 0;
  if (!is_of_packets && says_more) return Parsed::broken;
  frame.bytes = frame_header_bytes + length;
  if (arrived.size() < frame.bytes) return Parsed::partial;
  frame.body = arrived.subspan(frame_header_bytes, length);
  frame.run.bytes = is_of_packets ? frame.body : std::span<const std::byte>();
  return !is_of_packets || is_run(frame.run) ? Parsed::whole : Parsed::broken;
}

std::optional<StreamGreeting> parse_greeting_body(std::span<const std::byte> body) {
  if (body.size() != greeting_body) return std::nullopt;
  wire::Reader from(body);
  StreamGreeting greeting;
  if (from.number<std::uint64_t>() != greeting_magic) return std::nullopt;
  take_into(from, greeting.source);
  take_into(from, greeting.destination);
  greeting.slot = from.number<Slot>();
  greeting.target.slot = from.number<Slot>();
  greeting.target.service = from.number<std::uint32_t>();
  take_into(from, greeting.nonce);
  const bool names_one = is_slot(greeting.target.slot)
                             ? greeting.target.service == 0
                             : greeting.target.slot == 0 && greeting.target.service != 0;
  if (!is_slot(greeting.slot) || !names_one) return std::nullopt;
  return greeting;
}

std::optional<StreamChallenge> parse_challenge_body(std::span<const std::byte> body) {
  if (body.size() != challenge_body) return std::nullopt;
  wire::Reader from(body);
  StreamChallenge challenge;
  challenge.slot = from.number<Slot>();
  take_into(from, challenge.nonce);
  challenge.proof = from.number<std::uint64_t>();
  if (!is_slot(challenge.slot)) return std::nullopt;
  return challenge;
}

std::optional<std::uint64_t> parse_proof_body(std::span<const std::byte> body) {
  if (body.size() != proof_body) return std::nullopt;
  return wire::Reader(body).number<std::uint64_t>();
}

std::optional<bool> parse_answer_body(std::span<const std::byte> body) {
  if (body.size() != answer_body || body[0] > std::byte{1}) return std::nullopt;
  return body[0] == std::byte{1};
}

}  // namespace weir::link
