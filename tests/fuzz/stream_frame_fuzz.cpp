// Parses a stream as another host may send it, frame by frame. A frame that parses lies within what came; a
// run splits into packets that are each long enough for a header, and survives being encoded and parsed
// again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "link/stream/stream_frame.hpp"

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

void check(const weir::link::Frame& frame, std::span<const std::byte> whole) {
  namespace link = weir::link;
  if (frame.kind == link::FrameKind::run) {
    must(!frame.run.bytes.empty() && frame.run.bytes.size() <= link::max_streamed_bytes);
    must(frame.run.bytes.size() / frame.run.segment <= link::max_streamed_packets);
    must(std::ranges::equal(link::encode_run_frame(frame.run), whole.first(link::frame_header_bytes)));
  }
  if (const auto greeting = link::parse_greeting_body(frame.body)) {
    must(greeting->slot != 0 && greeting->slot < link::max_slots);
    if (frame.kind == link::FrameKind::greeting)
      must(std::ranges::equal(link::encode_frame(*greeting), whole));
  }
  if (const auto challenge = link::parse_challenge_body(frame.body);
      challenge && frame.kind == link::FrameKind::challenge)
    must(std::ranges::equal(link::encode_frame(*challenge), whole));
  if (frame.kind == link::FrameKind::proof) must(link::parse_proof_body(frame.body).has_value());
  (void)link::parse_answer_body(frame.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace link = weir::link;
  auto arrived = std::as_bytes(std::span(data, size));
  link::Frame frame;
  while (link::parse_frame(arrived, frame) == link::Parsed::whole) {
    must(frame.bytes > link::frame_header_bytes && frame.bytes <= arrived.size());
    check(frame, arrived.first(frame.bytes));
    arrived = arrived.subspan(frame.bytes);
  }
  return 0;
}
