// Metadata as a hub may send it. Parsed metadata must survive being encoded and parsed again, and all its
// tensors lie within the bytes of their version.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tensor/arrays/metadata.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace tensor = weir::tensor;
  const auto metadata = tensor::parse_metadata(std::as_bytes(std::span(data, size)));
  if (!metadata) return 0;
  for (const tensor::TensorInfo& each : metadata->tensors) {
    const auto bytes = each.bytes();
    if (!bytes || each.offset + *bytes > metadata->data_bytes) std::abort();
  }
  const auto block = tensor::encode(*metadata);
  if (!block || tensor::parse_metadata(*block).value() != *metadata) std::abort();
  return 0;
}
