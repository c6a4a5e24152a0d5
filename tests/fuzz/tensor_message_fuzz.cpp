// A tensor message as a peer may send it, a greeting, and a record. Whatever parses must survive being
// encoded and parsed again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tensor/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = weir::tensor::wire;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  if (const auto message = wire::parse(bytes)) {
    const auto again = wire::parse(wire::encode(*message));
    if (!again || *again != *message) std::abort();
  }
  if (const auto greeting = wire::parse_greeting(bytes)) {
    const auto again = wire::parse_greeting(wire::encode(*greeting));
    if (!again || *again != *greeting) std::abort();
  }
  return 0;
}
