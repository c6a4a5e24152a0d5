// A frame of tensor messages as a peer may send it, and a greeting. A parsed one must survive being
// encoded and parsed again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "tensor/link/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = weir::tensor::wire;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  for (std::span<const std::byte> frame = bytes; !frame.empty();) {
    const std::size_t before = frame.size();
    const auto message = wire::take_message(frame);
    if (!message) break;
    const std::vector<std::byte> encoded = wire::encode(*message);
    if (encoded.size() != before - frame.size()) std::abort();
    std::span<const std::byte> rest(encoded);
    const auto again = wire::take_message(rest);
    if (!again || *again != *message || !rest.empty()) std::abort();
  }
  if (const auto greeting = wire::parse_greeting(bytes)) {
    const auto again = wire::parse_greeting(wire::encode(*greeting));
    if (!again || *again != *greeting) std::abort();
  }
  return 0;
}
