// Parses any bytes as a RoCEv2 packet: an accepted packet encodes to the bytes that it came from.
#include <algorithm>
#include <cstdlib>

#include "wire/roce.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto frame = weir::wire::parse(bytes);
  if (!frame) return 0;
  const auto again = weir::wire::encode(*frame);
  // Ethernet may pad a short packet behind its end.
  if (again.size() > bytes.size() || !std::equal(again.begin(), again.end(), bytes.begin())) std::abort();
  return 0;
}
