// A list of names as a hub may send it. A parsed list has no byte too few or too many: written again from its
// entries it equals the input, except for zeros before a number.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "tensor/arrays/listing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace tensor = weir::tensor;
  const auto entries = tensor::parse_listing(std::as_bytes(std::span(data, size)));
  if (!entries) return 0;
  const std::vector<std::byte> again = tensor::encode_listing(*entries);
  if (again.size() > size) std::abort();
  const auto reread = tensor::parse_listing(again);
  if (!reread || reread->size() != entries->size()) std::abort();
  for (std::size_t i = 0; i < entries->size(); ++i) {
    const tensor::CatalogueEntry &one = (*entries)[i], &other = (*reread)[i];
    if (one.version != other.version || one.bytes != other.bytes || one.what != other.what ||
        one.name != other.name)
      std::abort();
  }
  return 0;
}
