// Parses a packet on a link connection as another process may send it. A parsed packet survives being encoded
// and parsed again, and a hello's greeting lies within its body.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "link/frame.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace link = weir::link;
  const auto frame = link::parse_frame(std::as_bytes(std::span(data, size)), {});
  if (!frame) return 0;
  const auto bytes = link::encode_frame(frame->type, frame->kind, frame->request, frame->body, 0);
  const auto again = link::parse_frame(bytes, {});
  if (!again || again->body != frame->body || again->kind != frame->kind) std::abort();
  if (const auto hello = link::parse_hello(frame->body)) {
    if (hello->greeting.size() + sizeof(link::HelloPrefix) != frame->body.size()) std::abort();
    if (hello->prefix.slot == 0 || hello->prefix.slot >= link::max_slots) std::abort();
  }
  return 0;
}
