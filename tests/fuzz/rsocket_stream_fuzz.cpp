// A stream peer's greeting and then its messages: whatever it sends, our counts stay within our ring.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "verbs/rsocket/stream_flow.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::rsocket;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto greeting = parse_greeting(bytes);
  if (!greeting) return 0;
  if (parse_greeting(encode(*greeting)) != greeting) std::abort();
  constexpr std::uint32_t ring_bytes = 4096;
  StreamFlow flow(ring_bytes, 16);
  flow.begin(*greeting);
  std::size_t at = greeting_bytes;
  const auto word = [&] {
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits = bits << 8 | (at < size ? data[at++] : 0U);
    return bits;
  };
  while (at < size) {
    if (const auto immediate = unpack(word())) flow.arrived(*immediate);
    if (flow.unread() > ring_bytes) std::abort();
    if (flow.unread() > 0) {
      const auto piece = flow.piece();
      if (piece.offset >= ring_bytes || piece.length > ring_bytes - piece.offset) std::abort();
      flow.consume(1 + word() % flow.unread());
    }
    while (const auto grant = flow.grant()) {
      if (grant->buffer && grant->buffer->offset + grant->buffer->length > ring_bytes) std::abort();
      if (grant->buffer && grant->buffer->peers_entry >= greeting->buffer_list.length) std::abort();
    }
    if (flow.wants_buffer()) flow.give_buffer({word(), word(), 1 + word() % 65536});
    if (flow.sendable() > 0) flow.take(1 + word() % flow.sendable());
  }
  return 0;
}
